package demo

import "syscall"

// apart keeps a terminal's Ctrl-C from the child, which is stopped in order
// instead, and ends it when the demo is killed.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
