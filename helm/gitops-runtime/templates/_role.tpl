{{/*
A role without state: its settings, Service, Deployment and budget. Takes a dict:
  root, component, values: the context, the component's name and its group of values, with `autoscaling` where its replicas may
    come and go
  command: the arguments of the program
  settings: its settings in YAML
  env: variables, as a list; may be left out
  files: the Secrets that it reads as files: where, and name and key
  ports: of its container beside 8088 (health and metrics), as [{name, containerPort}]
  service: name, annotations, type and ports of its Service
  health: the name of another Service for 8088, where that one is reached from outside; may be left out
  alone: whether new pods are to begin when former ones end, as those keep what they need; may be left out
*/}}
{{- define "gitops-runtime.role" -}}
{{- $root := .root -}}
{{- $values := .values -}}
{{- $name := printf "%s-%s" (include "gitops-runtime.fullname" $root) .component -}}
{{- $health := list (dict "name" "health" "port" 8088 "targetPort" "health") -}}
{{ include "gitops-runtime.settingsMap" (list $root .component $name .settings) }}
---
{{ include "gitops-runtime.service" (list $root .component (default $name .service.name) (set .service "ports" (concat .service.ports (ternary list $health (not (empty .health)))))) }}
{{- with .health }}
---
# For whoever asks within the cluster alone.
{{ include "gitops-runtime.service" (list $root $.component . (dict "type" "ClusterIP" "ports" $health)) }}
{{- end }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{- include "gitops-runtime.metadata" (list $root .component $name) | nindent 2 }}
spec:
  {{- $autoscaling := get $values "autoscaling" | default (dict "enabled" false) }}
  {{- if not $autoscaling.enabled }}
  replicas: {{ int $values.replicaCount }}
  {{- end }}
  revisionHistoryLimit: 3
  strategy:
    type: RollingUpdate
    rollingUpdate: {{ ternary "{maxSurge: 0, maxUnavailable: 100%}" "{maxSurge: 1, maxUnavailable: 0}" (get . "alone" | default false) }}
  selector:
    matchLabels: {{- include "gitops-runtime.selector" (list $root .component) | nindent 6 }}
  template:
    metadata: {{- include "gitops-runtime.podMetadata" (list $root .component $values .settings) | nindent 6 }}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ int $values.terminationGracePeriodSeconds }}
      securityContext: {{- include "gitops-runtime.podSecurity" $root | nindent 8 }}
      {{- include "gitops-runtime.scheduling" (list $root .component $values) | nindent 6 }}
      containers:
        - name: {{ .component }}
          image: {{ include "gitops-runtime.image" (list $root $root.Values.image) | quote }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          args: {{- toYaml (concat .command (list "--config" "/etc/gitops-runtime/settings/config.yaml")) | nindent 12 }}
          {{- with include "gitops-runtime.env" (list $root $values .env) }}
          env: {{- . | nindent 12 }}
          {{- end }}
          ports:
            {{- range .ports }}
            - {name: {{ .name }}, containerPort: {{ .containerPort }}, protocol: TCP}
            {{- end }}
            - {name: health, containerPort: 8088, protocol: TCP}
          readinessProbe:
            httpGet: {path: /readyz, port: health}
            {{- toYaml $values.readinessProbe | nindent 12 }}
          livenessProbe:
            httpGet: {path: /healthz, port: health}
            {{- toYaml $values.livenessProbe | nindent 12 }}
          resources: {{- toYaml $values.resources | nindent 12 }}
          securityContext: {{- include "gitops-runtime.security" $root | nindent 12 }}
          volumeMounts:
            - {name: settings, mountPath: /etc/gitops-runtime/settings, readOnly: true}
            - {name: tmp, mountPath: /tmp}
            {{- range $place, $_ := .files }}
            - {name: {{ $place }}, mountPath: /etc/gitops-runtime/{{ $place }}, readOnly: true}
            {{- end }}
            {{- with $values.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - name: settings
          configMap: {name: {{ $name }}}
        - name: tmp
          emptyDir: {}
        {{- range $place, $from := .files }}
        - name: {{ $place }}
          secret:
            secretName: {{ $from.name | quote }}
            defaultMode: 0440
            {{- with $from.key }}
            items: [{key: {{ . | quote }}, path: {{ . | quote }}}]
            {{- end }}
        {{- end }}
        {{- with $values.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- include "gitops-runtime.autoscaler" (list $root .component $name $autoscaling) }}
{{- include "gitops-runtime.budget" (list $root .component $name $values.pdb) }}
{{- end }}

{{/* What limits evictions of the pods of a Deployment. Takes (list context component name pdb). */}}
{{- define "gitops-runtime.budget" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $name := index . 2 -}}
{{- with index . 3 -}}
{{- if .enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{- include "gitops-runtime.metadata" (list $root $component $name) | nindent 2 }}
spec:
  selector:
    matchLabels: {{- include "gitops-runtime.selector" (list $root $component) | nindent 6 }}
  {{- if ne (toString .minAvailable) "" }}
  minAvailable: {{ .minAvailable }}
  {{- else }}
  maxUnavailable: {{ .maxUnavailable }}
  {{- end }}
  {{- with include "gitops-runtime.unhealthy" $root }}
  {{- . | nindent 2 }}
  {{- end }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* By a budget's own default a pod that is not well holds its node up when it is drained, and a single one does so for ever.
Kubernetes 1.27 knows how to say otherwise: 1.26 drops what is said of it, unless a gate is open, and whoever compares would call that a
difference for ever. */}}
{{- define "gitops-runtime.unhealthy" -}}
{{- if semverCompare ">=1.27-0" .Capabilities.KubeVersion.Version }}unhealthyPodEvictionPolicy: AlwaysAllow{{ end -}}
{{- end }}

{{/* What makes replicas of a Deployment come and go. Takes (list context component name autoscaling). */}}
{{- define "gitops-runtime.autoscaler" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $name := index . 2 -}}
{{- with index . 3 -}}
{{- if .enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{- include "gitops-runtime.metadata" (list $root $component $name) | nindent 2 }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: {{ $name }}}
  minReplicas: {{ int .minReplicas }}
  maxReplicas: {{ int .maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: {type: Utilization, averageUtilization: {{ int .targetCPUUtilizationPercentage }}}
{{- end -}}
{{- end -}}
{{- end }}
