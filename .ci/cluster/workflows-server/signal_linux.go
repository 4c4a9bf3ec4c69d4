// Signals and ends of the process that a container runs: the executor's own file of this name is not in the archive of its module.
package os_specific

import (
	"os"
	"syscall"
	"time"

	"github.com/argoproj/argo-workflows/v3/util/errors"
)

// Term asks a process to end.
var Term = syscall.SIGTERM

// CanIgnoreSignal tells the signals of this process itself from those that are passed on.
func CanIgnoreSignal(s os.Signal) bool {
	return s == syscall.SIGCHLD || s == syscall.SIGURG
}

// Kill sends a signal to a process and those of its group.
func Kill(pid int, s syscall.Signal) error {
	if group, err := syscall.Getpgid(pid); err == nil {
		pid = -group
	}
	return syscall.Kill(pid, s)
}

// Setpgid gives a process a group of its own.
func Setpgid(a *syscall.SysProcAttr) {
	a.Setpgid = true
}

// Wait reaps processes until that one has ended, and tells how.
func Wait(process *os.Process) error {
	pid := process.Pid
	if err := process.Release(); err != nil {
		return err
	}
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return err
		case ended == pid && status.Exited():
			return errors.NewExitErr(status.ExitStatus())
		case ended == pid && status.Signaled():
			return errors.NewExitErr(128 + int(status.Signal()))
		}
		time.Sleep(100 * time.Millisecond)
	}
}
