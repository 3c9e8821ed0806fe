//go:build !linux

package demo

import "syscall"

// apart does nothing here: a terminal's Ctrl-C reaches the children as well,
// which end by it a little earlier.
func apart() *syscall.SysProcAttr { return nil }
