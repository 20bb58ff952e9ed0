#!/usr/bin/env bash
# What a user of Helm does with a chart: `helm.sh HELM KUBECTL`, with KUBECONFIG set and an empty folder to work in.
# Prints "all well", or the command that said something else.
set -uo pipefail
helm=$1 kubectl=$2
chmod 600 "$KUBECONFIG"  # of others Helm warns
# Runs it; what it says must match.
says() {
  local wanted=$1 said
  shift
  said=$("$@" 2>&1)
  grep -qE -- "$wanted" <<<"$said" && return
  echo "said nothing of '$wanted': $*"
  echo "$said"
  exit 1
}
value() { "$kubectl" -n demo get "$1" "$2" -o "jsonpath={$3}"; }

"$helm" create app >created 2>&1 || { cat created; exit 1; }
mkdir app/crds
cat >app/crds/gizmos.yaml <<'END'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gizmos, singular: gizmo, kind: Gizmo}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
END
# A custom resource of that definition, a password that must outlive upgrades, a hook, and what the server can.
cat >app/templates/more.yaml <<'END'
apiVersion: example.com/v1
kind: Gizmo
metadata: {name: {{ include "app.fullname" . }}}
spec: {size: {{ .Values.size | default 3 }}}
---
{{- $old := lookup "v1" "Secret" .Release.Namespace "password" }}
apiVersion: v1
kind: Secret
metadata: {name: password}
data: {value: {{ if $old }}{{ $old.data.value }}{{ else }}{{ randAlphaNum 12 | b64enc }}{{ end }}}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: "before-hook-creation,hook-succeeded"}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: migrate, image: busybox, command: [sh, -c, {{ .Values.hook | default "true" | quote }}]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: capabilities}
data:
  version: {{ .Capabilities.KubeVersion.Version }}
  has: "{{ .Capabilities.APIVersions.Has "autoscaling/v2/HorizontalPodAutoscaler" }}"
END

says 'STATUS: deployed' "$helm" install web app -n demo --create-namespace --wait --timeout 60s \
  --set autoscaling.enabled=true --set ingress.enabled=true
says '^web\s+demo\s+1\s.*deployed\s+app-0.1.0' "$helm" list -A
says 'REVISION: 1' "$helm" status web -n demo
says 'kind: Deployment' "$helm" get manifest web -n demo
says 'true v1.27' "$kubectl" -n demo get configmap capabilities -o 'jsonpath={.data.has} {.data.version}'
says 'horizontalpodautoscaler.*/web-app' "$kubectl" -n demo get hpa,ingress -o name
says 'jobs.batch "migrate" not found' "$kubectl" -n demo get job migrate
password=$(value secret password .data.value)
says 'cannot re-use a name that is still in use' "$helm" install web app -n demo

says 'REVISION: 2' "$helm" upgrade web app -n demo --wait --timeout 60s --set replicaCount=2 --set size=5
says '^2 5$' echo "$(value deployment web-app .status.availableReplicas) $(value gizmo web-app .spec.size)"
says "^$password\$" value secret password .data.value
says 'No resources found' "$kubectl" -n demo get hpa,ingress
says 'Rollback was a success' "$helm" rollback web 1 -n demo --wait --timeout 60s
says '^1 3$' echo "$(value deployment web-app .status.replicas) $(value gizmo web-app .spec.size)"
says 'pre-upgrade hooks failed' "$helm" upgrade web app -n demo --timeout 20s --set hook='exit 3'
says '^4\s.*failed.*Upgrade "web" failed' "$helm" history web -n demo
says 'cannot unmarshal string into Go struct field' "$helm" upgrade web app -n demo --set-string service.port=many
says 'Phase:\s+Succeeded' "$helm" test web -n demo --timeout 60s
says 'release "web" uninstalled' "$helm" uninstall web -n demo --wait --timeout 60s
says 'deployments.apps "web-app" not found' "$kubectl" -n demo get deployment web-app
says 'gizmos.example.com' "$kubectl" get crd gizmos.example.com
says '^$' "$helm" list -A -q
echo "all well"
