package envoy

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"text/template"
	"time"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/policy/config"
)

//go:embed templates
var templateFiles embed.FS

// shared are the names that templates use, as {{names.ID}}.
var shared = map[string]string{
	"Prefix": names.Prefix, "ID": names.ID, "Target": names.Target, "Prepared": names.Prepared, "Length": names.Length,
	"TimeoutMS": names.TimeoutMS, "Idle": names.Idle, "Look": names.Look, "Node": names.Node, "Retry": names.Retry,
	"Local": names.Local, "LocalService": names.LocalService, "Role": names.Role, "Render": names.Render,
	"EnvoyMaxRetries": names.EnvoyMaxRetries, "EnvoyAttemptCount": names.EnvoyAttemptCount, "EnvoyPrefix": names.EnvoyPrefix,
	"PreparedYes": names.PreparedYes, "LookYes": names.LookYes, "LookConvert": names.LookConvert,
	"RolePlan": names.RolePlan, "RoleAttempt": names.RoleAttempt, "RoleJudge": names.RoleJudge,
	"LogExchange": names.LogExchange, "LogAttempt": names.LogAttempt,
	"Namespace": names.Namespace, "MetaID": names.MetaID, "MetaNode": names.MetaNode, "MetaAttempt": names.MetaAttempt, "MetaTarget": names.MetaTarget,
	"TailNamespace": names.TailNamespace, "TailText": names.TailText, "TailBytes": names.TailBytes,
	"ClusterService": names.ClusterService, "ClusterRunning": names.ClusterRunning, "ClusterDispatch": names.ClusterDispatch, "ClusterNone": names.ClusterNone, "TargetPrefix": names.TargetPrefix,
	"ListenerMain": names.ListenerMain, "ListenerDispatch": names.ListenerDispatch,
	"FilterGuard": names.FilterGuard, "FilterPlan": names.FilterPlan, "FilterAttempt": names.FilterAttempt, "FilterJudge": names.FilterJudge,
	"FilterNote": names.FilterNote, "FilterStrip": names.FilterStrip, "FilterTail": names.FilterTail, "FilterDirect": names.FilterDirect,
	"DetailsPrefix": names.DetailsPrefix,
}

// routeFiles say where a listener's routes are: the template, and the file of
// the dynamic form.
var routeFiles = map[string][2]string{
	names.ListenerMain:     {"listener-routes.yaml.tmpl", "rds.yaml"},
	names.ListenerDispatch: {"dispatch-routes.yaml.tmpl", "rds-dispatch.yaml"},
}

// execute runs one template over the view.
func execute(name string, v view) ([]byte, error) {
	root := template.New("").Option("missingkey=error")
	include := func(name string, data any) (string, error) {
		var out bytes.Buffer
		err := root.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	root.Funcs(template.FuncMap{
		"names": func() map[string]string { return shared }, "include": include,
		"q": quote, "sq": singleQuote, "indent": indent, "item": item, "typed": typed,
		"source": source,
		"routes": func(v view, listener string) (string, error) {
			file := routeFiles[listener]
			if v.Dynamic {
				return "rds: {route_config_name: " + listener + ", config_source: " + source(v, file[1]) + "}", nil
			}
			text, err := include(file[0], v)
			return "route_config:\n" + indent(2, text), err
		},
	})
	if _, err := root.ParseFS(templateFiles, "templates/*.tmpl"); err != nil {
		return nil, fmt.Errorf("templates: %w", err)
	}
	text, err := include(name, v)
	return []byte(text), err
}

// source is a config source that follows one file; watching its folder also
// sees the swap of a ConfigMap.
func source(v view, file string) string {
	return "{resource_api_version: V3, path_config_source: {path: " + quote(path.Join(v.Dir, file)) + ", watched_directory: {path: " + quote(v.Dir) + "}}}"
}

// quote makes a YAML double-quoted scalar, unless the text is plain anyway.
func quote(s string) string {
	plain := s != ""
	for i, c := range s {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 && c != '/' || !strings.ContainsRune("0123456789.-_/", c)) {
			plain = false
		}
	}
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
		plain = false
	}
	if plain {
		return s
	}
	// JSON strings are YAML strings.
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil {
		return `""`
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func singleQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func indent(n int, text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = strings.Repeat(" ", n) + line
		}
	}
	return strings.Join(lines, "\n")
}

// item makes text one element of a list that is indented by n.
func item(n int, text string) string {
	return strings.Repeat(" ", n) + "- " + strings.TrimLeft(indent(n+2, text), " ")
}

func typed(message, text string) string {
	return `"@type": type.googleapis.com/` + message + "\n" + text
}

// duration writes d as Envoy's config does.
func duration(d time.Duration) string { return config.IdleHeader(d) }
