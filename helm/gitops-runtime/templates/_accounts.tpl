{{/* The account that the reporter has. */}}
{{- define "gitops-runtime.serviceAccount" -}}
{{- include "gitops-runtime.accountOf" (list (printf "%s-reporter" (include "gitops-runtime.fullname" .)) .Values.reporter) -}}
{{- end }}

{{/* The account of a component. Takes (list name values): how it is called where nobody says. */}}
{{- define "gitops-runtime.accountOf" -}}
{{- $values := index . 1 -}}
{{- /* What an earlier version did not know is not there where its values are used again. */ -}}
{{- $create := ternary $values.serviceAccount.create true (hasKey $values.serviceAccount "create") -}}
{{- default (ternary (index . 0) "default" $create) $values.serviceAccount.name -}}
{{- end }}

{{/* Makes it, where it is to be made. Takes (list context component account values). */}}
{{- define "gitops-runtime.account" -}}
{{- $root := index . 0 -}}
{{- $values := index . 3 -}}
{{- if ternary $values.serviceAccount.create true (hasKey $values.serviceAccount "create") -}}
apiVersion: v1
kind: ServiceAccount
metadata: {{- include "gitops-runtime.metadata" (list $root (index . 1) (index . 2 | quote)) | nindent 2 }}
  {{- with $values.serviceAccount.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end -}}
{{- end }}

{{/* What gives an account the rights of a Role in a namespace, or of a ClusterRole. Takes (list context component kind name namespace
     account). */}}
{{- define "gitops-runtime.binding" -}}
{{- $root := index . 0 -}}
{{- $kind := index . 2 -}}
{{- $name := index . 3 -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ $name }}
  {{- if eq $kind "Role" }}
  namespace: {{ index . 4 | quote }}
  {{- end }}
  labels: {{- include "gitops-runtime.labels" . | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: {{ $kind }}, name: {{ $name | quote }}}
subjects:
  - {kind: ServiceAccount, name: {{ index . 5 | quote }}, namespace: {{ $root.Release.Namespace | quote }}}
{{- end }}
