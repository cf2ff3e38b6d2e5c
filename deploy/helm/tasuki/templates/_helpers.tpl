{{- define "tasuki.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "tasuki.fullname" -}}
{{- $name := include "tasuki.name" . }}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) }}
{{- default $full .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "tasuki.selector" -}}
app.kubernetes.io/name: {{ include "tasuki.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tasuki.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "tasuki.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "tasuki.serviceAccount" -}}
{{- $own := .Values.serviceAccount.create | ternary (include "tasuki.fullname" .) "default" }}
{{- default $own .Values.serviceAccount.name }}
{{- end }}

{{/* Every name that the service has in the cluster, and what else was given. */}}
{{- define "tasuki.hosts" -}}
{{- $name := include "tasuki.fullname" . }}
{{- $in := printf "%s.%s" $name .Release.Namespace }}
{{- $names := list $name $in (printf "%s.svc" $in) (printf "%s.svc.cluster.local" $in) }}
{{- concat $names .Values.hosts | join "," }}
{{- end }}

{{/* A probe names localhost: by default it would name the pod's address, which the broker refuses. */}}
{{- define "tasuki.probe" -}}
httpGet:
  path: {{ . }}
  port: http
  httpHeaders:
    - name: Host
      value: localhost
{{- end }}
