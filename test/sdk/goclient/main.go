// Command goclient sends jobs with the vendor's library for Go; see package sdk.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/crossdoor/crossdoor/test/sdk"
)

func main() {
	if err := run(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "goclient:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, in io.Reader, out io.Writer) error {
	client := anthropic.NewClient(option.WithoutEnvironmentDefaults())
	lines := bufio.NewReader(in)
	encoder := json.NewEncoder(out)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading jobs: %w", err)
		}
		var job sdk.Job
		if err := json.Unmarshal(line, &job); err != nil {
			return fmt.Errorf("a job: %w", err)
		}
		result, err := send(ctx, &client, job)
		if err != nil {
			return fmt.Errorf("job %s: %w", job.Name, err)
		}
		if err := encoder.Encode(result); err != nil {
			return fmt.Errorf("writing results: %w", err)
		}
	}
}

// send makes the call. Its own error is of the job; the library's is in the
// result.
func send(ctx context.Context, client *anthropic.Client, job sdk.Job) (sdk.Result, error) {
	result := sdk.Result{Name: job.Name}
	var response *http.Response
	opts := []option.RequestOption{option.WithBaseURL(job.BaseURL), option.WithAPIKey(job.APIKey), option.WithResponseInto(&response)}
	for name, value := range job.Headers {
		opts = append(opts, option.WithHeader(name, value))
	}
	for name, value := range job.Query {
		opts = append(opts, option.WithQuery(name, value))
	}
	call := message
	switch {
	case job.Count:
		call = count
	case job.Beta && job.Stream:
		call = betaStream
	case job.Beta:
		call = betaMessage
	case job.Stream:
		call = stream
	}
	failure, err := call(ctx, client, job, &result, opts)
	if err != nil {
		return result, err
	}
	if response != nil {
		result.ServedBy, result.RequestID = response.Header.Get("x-crossdoor-served-by"), response.Header.Get("request-id")
	}
	if failure != nil {
		result.Error = describe(failure)
	}
	return result, nil
}

func describe(err error) *sdk.Error {
	var typed *anthropic.Error
	if !errors.As(err, &typed) {
		return &sdk.Error{Class: fmt.Sprintf("%T", err), Message: err.Error()}
	}
	return &sdk.Error{Class: "Error", Status: typed.StatusCode, Type: string(typed.Type()), Message: typed.Message}
}
