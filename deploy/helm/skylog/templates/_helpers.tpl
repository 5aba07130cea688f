{{- define "skylog.name" -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end -}}

{{- define "skylog.voters" -}}
{{- $name := include "skylog.name" . -}}
{{- $voters := list -}}
{{- range $ordinal := until (int .Values.controllers.replicas) -}}
{{- $host := printf "%s-controller-%d.%s-controllers.%s.svc.%s" $name $ordinal $name $.Release.Namespace $.Values.clusterDomain -}}
{{- $voters = append $voters (printf "%d@%s:9093" (add1 $ordinal) $host) -}}
{{- end -}}
{{ join "," $voters }}
{{- end -}}
