// Command argocd is the servers and controllers of Argo CD in one binary: it runs the one it is called by.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	controller "github.com/argoproj/argo-cd/v3/cmd/argocd-application-controller/commands"
	applicationsets "github.com/argoproj/argo-cd/v3/cmd/argocd-applicationset-controller/commands"
	reposerver "github.com/argoproj/argo-cd/v3/cmd/argocd-repo-server/commands"
	apiserver "github.com/argoproj/argo-cd/v3/cmd/argocd-server/commands"
	"github.com/spf13/cobra"
)

func main() {
	commands := map[string]func() *cobra.Command{
		"argocd-server":                    apiserver.NewCommand,
		"argocd-repo-server":               reposerver.NewCommand,
		"argocd-application-controller":    controller.NewCommand,
		"argocd-applicationset-controller": applicationsets.NewCommand,
	}
	name := filepath.Base(os.Args[0])
	command, known := commands[name]
	if !known {
		fmt.Fprintf(os.Stderr, "argocd: there is no command %q here; call it by a link named after one\n", name)
		os.Exit(2)
	}
	if command().Execute() != nil {
		os.Exit(1)
	}
}
