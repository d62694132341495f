package kafkatest

import "syscall"

// endWithParent has the kernel kill the broker when the process that started
// it dies: an orphan would hold its memory until the machine restarts.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
