// Package sdk is what the tests with real clients say to them: a client is a
// program that reads jobs from its standard input, one JSON object a line, sends
// each with its vendor's library as it comes (retries as they are by default),
// and writes one result a line. goclient is the one in Go, ../python has the
// other.
package sdk

import "encoding/json"

// Job is one call of a client's library.
type Job struct {
	Name    string            `json:"name"` // unique in a run
	BaseURL string            `json:"base_url"`
	APIKey  string            `json:"api_key"`
	Count   bool              `json:"count"` // count_tokens in place of a message
	Stream  bool              `json:"stream"`
	Beta    bool              `json:"beta"`    // the library's beta methods
	Betas   []string          `json:"betas"`   // for the beta methods
	Headers map[string]string `json:"headers"` // more of them
	Query   map[string]string `json:"query"`   // more than the library adds
	// Request is the body less what the library adds.
	Request json.RawMessage `json:"request"`
}

// Result is what a client's caller sees of a job.
type Result struct {
	Name      string   `json:"name"`
	ServedBy  string   `json:"served_by"`         // x-crossdoor-served-by
	RequestID string   `json:"request_id"`        // as the library tells it
	Message   *Message `json:"message,omitempty"` // assembled by the library when it was a stream
	Events    []string `json:"events,omitempty"`  // types in order, pings left out
	Tokens    int      `json:"tokens,omitempty"`  // of a count
	Error     *Error   `json:"error,omitempty"`
}

// Message has the fields of the library's own type.
type Message struct {
	ID         string  `json:"id"`
	Content    []Block `json:"content"`
	StopReason string  `json:"stop_reason"`
	Usage      Usage   `json:"usage"`
}

// Block is a block of text, thinking or tool_use.
type Block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Thinking  string          `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
}

// Usage is in tokens.
type Usage struct {
	Input         int `json:"input_tokens"`
	CacheCreation int `json:"cache_creation_input_tokens"`
	CacheRead     int `json:"cache_read_input_tokens"`
	Output        int `json:"output_tokens"`
}

// Error is the library's typed error.
type Error struct {
	Class   string `json:"class"`  // the name of its type
	Status  int    `json:"status"` // 0: no answer
	Type    string `json:"type"`   // error.type of the body
	Message string `json:"message"`
}
