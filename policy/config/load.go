package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The bounds of the text. The parser takes time in the square of the number of
// members, and recurses with the nesting.
const (
	MaxFileBytes = 256 << 10
	maxTokens    = 30_000
	maxNesting   = 32
)

// Catalog is what is built in about models and features. A nil func is an empty
// table, and a nil Feature takes every name. All are called while loading,
// ModelID also later, by Target.ModelID: it must be safe for concurrent use.
type Catalog struct {
	// ModelID is the platform's ID for a client's model at a place.
	ModelID func(platform string, at ModelPlace, model string) (id string, ok bool)
	// Models lists the client's names of the built-in models; errors suggest
	// from it.
	Models func() []string
	// Feature says whether the portability table has a feature, and whether a
	// request can do without it.
	Feature func(name string) (known, strippable bool)
	// Features lists the names that Feature knows; errors suggest from it.
	Features func() []string
}

// ModelPlace is where a target is, as far as its platform's IDs depend on it.
// What the platform does not have is "".
type ModelPlace struct {
	Region  string
	Profile Profile
	Hosting Hosting
}

// Load reads a policy file; name is how errors call it. The error is an *Errors
// with everything that is wrong, and the Policy is nil then. data is not kept.
func Load(name string, data []byte, catalog Catalog) (*Policy, error) {
	doc := newDocument(name)
	var policy *Policy
	if body, ok := doc.parse(data); ok {
		file := doc.decode(body)
		policy = compile(doc, file, catalog)
	}
	if len(doc.errs) > 0 {
		return nil, sorted(doc.errs)
	}
	sum := sha256.Sum256(data)
	policy.Hash = hex.EncodeToString(sum[:])[:12]
	policy.RenderHash = renderHash(policy)
	policy.ForwardedHeaders = forwardedHeaders(policy.Targets)
	return policy, nil
}

const yamlPath = "yaml" // the Path of what is wrong with the text itself

// parse is the top node of the only YAML document in data; ok is false when
// there is something that cannot be decoded.
func (d *document) parse(data []byte) (ast.Node, bool) {
	if len(data) > MaxFileBytes {
		d.report(position{1, 1}, yamlPath, "the file has %d bytes; a policy has at most %s", len(data), sizeText(MaxFileBytes))
		return nil, false
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	if !d.checkText(data) {
		return nil, false
	}
	tokens := lexer.Tokenize(string(data))
	if !d.checkTokens(tokens) {
		return nil, false
	}
	file, err := safely(func() (*ast.File, error) {
		return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	})
	if err != nil {
		d.syntax(err)
		return nil, false
	}
	return d.only(file)
}

// only is the body of the file's one document.
func (d *document) only(file *ast.File) (ast.Node, bool) {
	var bodies []*ast.DocumentNode
	for _, doc := range file.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc)
		}
	}
	if len(bodies) == 0 {
		d.report(position{1, 1}, "", "the file is empty; it begins with `version: 1`")
		return nil, false
	}
	if len(bodies) > 1 {
		d.report(positionOf(bodies[1].Body), yamlPath, "a second document; a policy is one YAML document")
		return nil, false
	}
	return bodies[0].Body, true
}

// safely keeps a bug of the parser on odd input from ending the service that
// reloads its policy. The parser keeps no state between calls.
func safely(parse func() (*ast.File, error)) (file *ast.File, err error) {
	defer func() {
		if recover() != nil {
			file, err = nil, errors.New("the text cannot be parsed as YAML")
		}
	}()
	return parse()
}

// syntax reports a parser's error without the source excerpt that the parser
// adds, since that may hold a key.
func (d *document) syntax(err error) {
	at, message := position{1, 1}, "the text cannot be parsed as YAML"
	if e, ok := errors.AsType[yaml.Error](err); ok {
		message = e.GetMessage()
		if t := e.GetToken(); t != nil && t.Position != nil {
			at = position{t.Position.Line, t.Position.Column}
		}
	}
	d.report(d.inside(at), yamlPath, "%s", cut(strings.ToValidUTF8(message, "")))
}

// inside is the nearest position that the file has: the parser's own errors
// can point behind the end.
func (d *document) inside(at position) position {
	at.line = min(max(at.line, 1), max(len(d.lines), 1))
	if at.line <= len(d.lines) {
		at.col = min(max(at.col, 1), d.lines[at.line-1]+1)
	}
	return position{at.line, max(at.col, 1)}
}

// checkText refuses what is not UTF-8 and control characters, and measures the
// lines.
func (d *document) checkText(data []byte) bool {
	at := position{1, 1}
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && n == 1:
			d.report(at, yamlPath, "not UTF-8")
			return false
		case r != '\n' && r != '\t' && (r < 0x20 || r == 0x7f || (r >= 0x80 && r < 0xa0) || r == 0x2028 || r == 0x2029 || r == 0xfeff):
			d.report(at, yamlPath, "control character U+%04X", r)
			return false
		case r == '\n':
			d.lines = append(d.lines, at.col-1)
			at = position{at.line + 1, 1}
		default:
			at.col++
		}
		data = data[n:]
	}
	d.lines = append(d.lines, at.col-1)
	return true
}

// checkTokens bounds the nesting and refuses the parts of YAML by which a text
// says something in one place and means it in another.
func (d *document) checkTokens(tokens token.Tokens) bool {
	if len(tokens) > maxTokens {
		d.report(position{1, 1}, yamlPath, "the file is too large: more than %d words and signs", maxTokens)
		return false
	}
	flow, entries, line := 0, 0, 0
	for _, t := range tokens {
		at := d.inside(position{t.Position.Line, t.Position.Column})
		if at.line != line {
			line, entries = at.line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType:
			entries++
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			d.report(at, yamlPath, "anchors and aliases (& * <<) are not part of a policy: write the value out, or quote a text that begins with * or &")
		case token.TagType, token.DirectiveType:
			d.report(at, yamlPath, "tags and directives (! %%) are not part of a policy: quote a text that begins with ! or %%")
		}
		if flow > maxNesting || entries > maxNesting || t.Position.IndentNum > 20*maxNesting {
			d.report(at, yamlPath, "nested too deeply")
			return false
		}
	}
	return len(d.errs) == 0
}
