{{/* The Secrets that the resource reporter reads as files: where, and name and key. */}}
{{- define "gitops-runtime.resourceReporterFiles" -}}
{{- $files := dict -}}
{{- if eq .Values.resourceReporter.sink "platform" -}}
{{- $files = include "gitops-runtime.platformFiles" . | fromYaml -}}
{{- end -}}
{{- if .Values.reporter.redactionKey.secretKeyRef.name -}}
{{- $_ := set $files "redaction" .Values.reporter.redactionKey.secretKeyRef -}}
{{- else if has "redaction-key" (include "gitops-runtime.generatedKeys" . | fromYamlArray) -}}
{{- /* The reporter makes it; until then the pod waits. */}}
{{- $_ := set $files "redaction" (dict "name" (include "gitops-runtime.generated" .) "key" "redaction-key") -}}
{{- end -}}
{{- toYaml $files -}}
{{- end }}

{{/* The settings of the role resource-reporter: those that the values say, and above them `resourceReporter.config`. */}}
{{- define "gitops-runtime.resourceReporterSettings" -}}
{{- $values := .Values.resourceReporter -}}
{{- $at := dict -}}
{{- range $place, $from := include "gitops-runtime.resourceReporterFiles" . | fromYaml -}}
{{- $_ := set $at $place (printf "/etc/gitops-runtime/%s/%s" $place $from.key) -}}
{{- end -}}
{{- $settings := dict
  "kubernetes" (dict "namespace" (include "gitops-runtime.argocdNamespace" .))
  "platform" (dict "url" (include "gitops-runtime.platformUrl" .))
  "state" (dict "directory" "/var/lib/gitops-runtime")
  "log" (dict "format" "json")
  "reporter" (dict "sink" (dict "kind" $values.sink))
  "resources" (dict "namespaces" $values.namespaces "kinds" $values.kinds "preset" $values.preset "applications" $values.applications)
-}}
{{- with $at.platform -}}
{{- $_ := set $settings.platform "tokenFile" . -}}
{{- $_ := set $settings.reporter.sink "platform" (dict "path" (ternary "/2.0/api/events" $.Values.global.codefresh.apiEventsPath $.Values.platform.enabled)) -}}
{{- end -}}
{{- with index $at "platform-ca" -}}{{- $_ := set $settings.platform "caFile" . -}}{{- end -}}
{{- with $at.redaction -}}{{- $_ := set $settings "redaction" (dict "keyFile" .) -}}{{- end -}}
{{- if .Values.ipv6.enabled -}}
{{- $_ := set $settings "serve" (dict "address" "[::]:8088" "metricsAddress" "[::]:8087") -}}
{{- end -}}
{{- toYaml (mergeOverwrite $settings (deepCopy $values.config)) -}}
{{- end }}

{{/*
The rules of the role resource-reporter, as YAML: what `gitops-runtime rbac print --role resource-reporter` prints. Takes what
stands under `resources` in the settings. A kind that is selected is not read object by object; owners and applications are.
*/}}
{{- define "gitops-runtime.resourceRules" -}}
{{- $preset := list "services" "configmaps" "replicasets.apps" "deployments.apps" "statefulsets.apps" "applications.argoproj.io" "applicationsets.argoproj.io" "rollouts.argoproj.io" "analysisruns.argoproj.io" "workflows.argoproj.io" "workflowtemplates.argoproj.io" "clusterworkflowtemplates.argoproj.io" "sensors.argoproj.io" "eventsources.argoproj.io" "products.codefresh.io" "promotionflows.codefresh.io" "promotionpolicies.codefresh.io" "promotiontemplates.codefresh.io" "restrictedgitsources.codefresh.io" "sealedsecrets.bitnami.com" -}}
{{- /* Kinds, and those above them, as far as owners are asked for. */}}
{{- $owners := dict
  "analysisruns.argoproj.io" (list "rollouts.argoproj.io" "experiments.argoproj.io")
  "experiments.argoproj.io" (list "rollouts.argoproj.io")
  "pods" (list "statefulsets.apps" "workflows.argoproj.io" "cronworkflows.argoproj.io" "replicasets.apps" "deployments.apps" "rollouts.argoproj.io" "experiments.argoproj.io")
  "replicasets.apps" (list "deployments.apps" "rollouts.argoproj.io" "experiments.argoproj.io")
  "workflows.argoproj.io" (list "cronworkflows.argoproj.io")
-}}
{{- $wanted := list -}}
{{- $selected := list -}}
{{- range $kind := .kinds -}}
{{- $rules := ternary (dict "kind" $kind) $kind (kindIs "string" $kind) -}}
{{- $resource := first (splitList "@" $rules.kind) -}}
{{- $wanted = append $wanted $resource -}}
{{- if or (trim (default "" $rules.labelSelector)) (trim (default "" $rules.fieldSelector)) -}}
{{- $selected = append $selected $resource -}}
{{- end -}}
{{- end -}}
{{- if eq .preset "incumbent" -}}
{{- range $resource := $preset -}}
{{- if not (has $resource $wanted) -}}{{- $wanted = append $wanted $resource -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- $read := list -}}
{{- if .applications -}}
{{- range $resource := $wanted -}}{{- $read = concat $read (get $owners $resource | default list) -}}{{- end -}}
{{- $read = uniq (append $read "applications.argoproj.io") -}}
{{- end -}}
{{- range $resource := $wanted }}
- apiGroups: [{{ join "." (rest (splitList "." $resource)) | quote }}]
  resources: [{{ first (splitList "." $resource) }}]
  verbs: {{ ternary "[list, watch]" "[get, list, watch]" (has $resource $selected) }}
{{- end }}
{{- range $resource := $read }}
{{- if or (not (has $resource $wanted)) (has $resource $selected) }}
- apiGroups: [{{ join "." (rest (splitList "." $resource)) | quote }}]
  resources: [{{ first (splitList "." $resource) }}]
  verbs: [get]
{{- end }}
{{- end }}
{{- end }}
