package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"

	"github.com/crossdoor/crossdoor/test/sdk"
)

// The calls fill the result. The first error is the library's, the second one
// says that the job is wrong.

func count(ctx context.Context, client *anthropic.Client, job sdk.Job, result *sdk.Result, opts []option.RequestOption) (failure, wrong error) {
	var params anthropic.MessageCountTokensParams
	if err := json.Unmarshal(job.Request, &params); err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	counted, err := client.Messages.CountTokens(ctx, params, opts...)
	if err != nil {
		return err, nil
	}
	result.Tokens = int(counted.InputTokens)
	return nil, nil
}

func message(ctx context.Context, client *anthropic.Client, job sdk.Job, result *sdk.Result, opts []option.RequestOption) (failure, wrong error) {
	var params anthropic.MessageNewParams
	if err := json.Unmarshal(job.Request, &params); err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	m, err := client.Messages.New(ctx, params, opts...)
	if err != nil {
		return err, nil
	}
	result.Message = plain(m)
	return nil, nil
}

func stream(ctx context.Context, client *anthropic.Client, job sdk.Job, result *sdk.Result, opts []option.RequestOption) (failure, wrong error) {
	var params anthropic.MessageNewParams
	if err := json.Unmarshal(job.Request, &params); err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	events := client.Messages.NewStreaming(ctx, params, opts...)
	var whole anthropic.Message
	for events.Next() {
		result.Events = append(result.Events, events.Current().Type)
		if err := whole.Accumulate(events.Current()); err != nil {
			return err, nil
		}
	}
	if err := events.Err(); err != nil {
		return err, nil
	}
	result.Message = plain(&whole)
	return nil, nil
}

func betaMessage(ctx context.Context, client *anthropic.Client, job sdk.Job, result *sdk.Result, opts []option.RequestOption) (failure, wrong error) {
	m, err := client.Beta.Messages.New(ctx, betaParams(job), opts...)
	if err != nil {
		return err, nil
	}
	result.Message = plainBeta(m)
	return nil, nil
}

func betaStream(ctx context.Context, client *anthropic.Client, job sdk.Job, result *sdk.Result, opts []option.RequestOption) (failure, wrong error) {
	events := client.Beta.Messages.NewStreaming(ctx, betaParams(job), opts...)
	var whole anthropic.BetaMessage
	for events.Next() {
		result.Events = append(result.Events, events.Current().Type)
		if err := whole.Accumulate(events.Current()); err != nil {
			return err, nil
		}
	}
	if err := events.Err(); err != nil {
		return err, nil
	}
	result.Message = plainBeta(&whole)
	return nil, nil
}

// betaParams keeps the request as it is: the library's types do not have every
// member that clients of betas send.
func betaParams(job sdk.Job) anthropic.BetaMessageNewParams {
	params := param.Override[anthropic.BetaMessageNewParams](job.Request)
	params.Betas = job.Betas
	return params
}

// plain takes a message of the library apart.
func plain(m *anthropic.Message) *sdk.Message {
	out := &sdk.Message{ID: m.ID, StopReason: string(m.StopReason), Usage: sdk.Usage{
		Input: int(m.Usage.InputTokens), CacheCreation: int(m.Usage.CacheCreationInputTokens), CacheRead: int(m.Usage.CacheReadInputTokens), Output: int(m.Usage.OutputTokens),
	}}
	for _, b := range m.Content {
		out.Content = append(out.Content, sdk.Block{Type: b.Type, Text: b.Text, Thinking: b.Thinking, Signature: b.Signature, ID: b.ID, Name: b.Name, Input: b.Input})
	}
	return out
}

// plainBeta is plain for the beta's type.
func plainBeta(m *anthropic.BetaMessage) *sdk.Message {
	out := &sdk.Message{ID: m.ID, StopReason: string(m.StopReason), Usage: sdk.Usage{
		Input: int(m.Usage.InputTokens), CacheCreation: int(m.Usage.CacheCreationInputTokens), CacheRead: int(m.Usage.CacheReadInputTokens), Output: int(m.Usage.OutputTokens),
	}}
	for _, b := range m.Content {
		out.Content = append(out.Content, sdk.Block{Type: b.Type, Text: b.Text, Thinking: b.Thinking, Signature: b.Signature, ID: b.ID, Name: b.Name, Input: b.Input})
	}
	return out
}
