package demo

import (
	"errors"
	"math/rand/v2"
	"net"
)

// Ports are taken below those that outgoing connections are given, so that
// nobody gets one by chance between the look and its use.
const (
	firstPort = 10000
	lastPort  = 32000
)

var errNoPort = errors.New("no free port on 127.0.0.1 between 10000 and 32000")

// freePorts are n different ports of 127.0.0.1 that nobody listens on.
func freePorts(n int) ([]int, error) {
	var out []int
	at := firstPort + rand.IntN(lastPort-firstPort)
	for range 1000 {
		if at++; at > lastPort {
			at = firstPort
		}
		l, err := net.Listen("tcp", local(at))
		if err != nil {
			continue
		}
		_ = l.Close() // nothing was accepted
		if out = append(out, at); len(out) == n {
			return out, nil
		}
	}
	return nil, errNoPort
}
