#!/usr/bin/env python3
"""Sends jobs with the vendor's Python library; ../sdk/job.go says what jobs and results are.

    client.py MAJOR     the library's major version, 1 or 2
"""

import json
import os
import sys

sys.dont_write_bytecode = True  # the tree stays clean

import fetch  # noqa: E402  the line above is for it

# What the platform sends; the library's helper adds events of its own.
WIRE = ("message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop")
BLOCK = ("type", "text", "thinking", "signature", "id", "name", "input")
USAGE = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


def load(major):
    """The library's module."""
    places = fetch.paths(major)
    if not all(os.path.isdir(place) for place in places):
        sys.exit(f"client.py: the vendor's library is not installed in {fetch.CACHE}: run `make python-sdk`")
    sys.path[:0] = places
    import anthropic
    return anthropic


def plain(message):
    """A message of the library, taken apart."""
    blocks = [{name: value for name in BLOCK if (value := getattr(block, name, None)) is not None} for block in message.content]
    usage = {name: getattr(message.usage, name) or 0 for name in USAGE}
    return {"id": message.id, "content": blocks, "stop_reason": message.stop_reason, "usage": usage}


def call(client, job, result):
    """Makes the call and fills the result; raises what the library raises."""
    messages = client.beta.messages if job["beta"] else client.messages
    arguments = dict(job["request"], extra_headers=job["headers"] or {}, extra_query=job["query"] or {})
    if job["beta"]:
        arguments["betas"] = job["betas"] or []
    if job["count"]:
        headers, result["tokens"] = raw(messages.count_tokens, arguments, lambda counted: counted.input_tokens)
    elif not job["stream"]:
        headers, result["message"] = raw(messages.create, arguments, plain)
    else:
        with messages.stream(**arguments) as stream:
            headers = stream.response.headers
            result["events"] = []
            for event in stream:
                if event.type in WIRE:
                    result["events"].append(event.type)
            result["message"] = plain(stream.get_final_message())
    result["served_by"] = headers.get("x-crossdoor-served-by", "")
    result["request_id"] = headers.get("request-id", "")


def raw(method, arguments, read):
    response = getattr(method.__self__.with_raw_response, method.__name__)(**arguments)
    return response.headers, read(response.parse())


def describe(anthropic, error):
    """The library's own error; what is none of its is a fault of this program."""
    body = error.body if isinstance(error.body, dict) else {}
    inner = body.get("error")
    inner = inner if isinstance(inner, dict) else body
    status = error.status_code if isinstance(error, anthropic.APIStatusError) else 0
    return {"class": type(error).__name__, "status": status, "type": inner.get("type", ""), "message": inner.get("message", error.message)}


def main():
    anthropic = load(sys.argv[1])
    clients = {}
    for line in sys.stdin:
        job = json.loads(line)
        where = (job["base_url"], job["api_key"])
        if where not in clients:
            clients[where] = anthropic.Anthropic(base_url=where[0], api_key=where[1])
        result = {"name": job["name"]}
        try:
            call(clients[where], job, result)
        except anthropic.APIError as error:
            result["error"] = describe(anthropic, error)
        print(json.dumps(result), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
