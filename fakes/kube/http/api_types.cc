#include "fakes/kube/http/api_types.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_split.h"
#include "core/base/json_access.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

// A type per line, its fields after it; what is indented goes on with the line above. `!`: required. Types: s text, q a
// quantity, i whole number, f number, b truth value, t time, m time with microseconds, y bytes, x number or text, o
// anything; [T a list, {T a mapping from text, ? anything at all, ?T such a T or anything else, or another type of this
// table. #2: the field's number in Kubernetes' protobuf encoding; #2.5: that of a message which JSON does not show, and
// within it; `*`: zero is not the same as nothing. The fields of Kubernetes 1.27 and what came later.
constexpr std::string_view kTypes = R"(
APIService metadata:ObjectMeta spec:APIServiceSpec status:APIServiceStatus
APIServiceCondition lastTransitionTime:t message:s reason:s status!:s type!:s
APIServiceSpec caBundle:y group:s groupPriorityMinimum!:i insecureSkipTLSVerify:b
  service:ApiregistrationV1ServiceReference version:s versionPriority!:i
APIServiceStatus conditions:[APIServiceCondition
AWSElasticBlockStoreVolumeSource fsType:s#2 partition:i#3 readOnly:b#4 volumeID!:s#1
AdmissionregistrationV1ServiceReference name!:s#2 namespace!:s#1 path:s#3* port:i#4*
AdmissionregistrationV1WebhookClientConfig caBundle:y#2 service:AdmissionregistrationV1ServiceReference#1* url:s#3*
Affinity nodeAffinity:NodeAffinity#1* podAffinity:PodAffinity#2* podAntiAffinity:PodAntiAffinity#3*
AggregationRule clusterRoleSelectors:[LabelSelector#1
ApiextensionsV1ServiceReference name!:s#2 namespace!:s#1 path:s#3* port:i#4*
ApiextensionsV1WebhookClientConfig caBundle:y#2 service:ApiextensionsV1ServiceReference#1* url:s#3*
ApiregistrationV1ServiceReference name:s namespace:s port:i
AppArmorProfile localhostProfile:s#2* type!:s#1
AttachedVolume devicePath!:s#2 name!:s#1
AutoscalingV1CrossVersionObjectReference apiVersion:s#3 kind!:s#1 name!:s#2
AutoscalingV1HorizontalPodAutoscaler metadata:ObjectMeta#1 spec:AutoscalingV1HorizontalPodAutoscalerSpec#2
  status:AutoscalingV1HorizontalPodAutoscalerStatus#3
AutoscalingV1HorizontalPodAutoscalerSpec maxReplicas!:i#3 minReplicas:i#2*
  scaleTargetRef!:AutoscalingV1CrossVersionObjectReference#1 targetCPUUtilizationPercentage:i#4*
AutoscalingV1HorizontalPodAutoscalerStatus currentCPUUtilizationPercentage:i#5* currentReplicas!:i#3
  desiredReplicas!:i#4 lastScaleTime:t#2* observedGeneration:i#1*
AzureDiskVolumeSource cachingMode:s#3* diskName!:s#1 diskURI!:s#2 fsType:s#4* kind:s#6* readOnly:b#5*
AzureFilePersistentVolumeSource readOnly:b#3 secretName!:s#1 secretNamespace:s#4* shareName!:s#2
AzureFileVolumeSource readOnly:b#3 secretName!:s#1 shareName!:s#2
BoundObjectReference apiVersion:s#2 kind:s#1 name:s#3 uid:s#4
CSIPersistentVolumeSource controllerExpandSecretRef:SecretReference#9* controllerPublishSecretRef:SecretReference#6*
  driver!:s#1 fsType:s#4 nodeExpandSecretRef:SecretReference#10* nodePublishSecretRef:SecretReference#8*
  nodeStageSecretRef:SecretReference#7* readOnly:b#3 volumeAttributes:{s#5 volumeHandle!:s#2
CSIVolumeSource driver!:s#1 fsType:s#3* nodePublishSecretRef:LocalObjectReference#5* readOnly:b#2*
  volumeAttributes:{s#4
Capabilities add:[s#1 drop:[s#2
CephFSPersistentVolumeSource monitors!:[s#1 path:s#2 readOnly:b#6 secretFile:s#4 secretRef:SecretReference#5*
  user:s#3
CephFSVolumeSource monitors!:[s#1 path:s#2 readOnly:b#6 secretFile:s#4 secretRef:LocalObjectReference#5* user:s#3
CertificateSigningRequest metadata:ObjectMeta#1 spec!:CertificateSigningRequestSpec#2
  status:CertificateSigningRequestStatus#3
CertificateSigningRequestCondition lastTransitionTime:t#5 lastUpdateTime:t#4 message:s#3 reason:s#2 status!:s#6
  type!:s#1
CertificateSigningRequestSpec expirationSeconds:i#8* extra:{[s#6 groups:[s#4 request!:y#1 signerName!:s#7 uid:s#3
  usages:[s#5 username:s#2
CertificateSigningRequestStatus certificate:y#2 conditions:[CertificateSigningRequestCondition#1
CinderPersistentVolumeSource fsType:s#2 readOnly:b#3 secretRef:SecretReference#4* volumeID!:s#1
CinderVolumeSource fsType:s#2 readOnly:b#3 secretRef:LocalObjectReference#4* volumeID!:s#1
ClientIPConfig timeoutSeconds:i#1*
ClusterRole aggregationRule:AggregationRule#3* metadata:ObjectMeta#1 rules:[PolicyRule#2
ClusterRoleBinding metadata:ObjectMeta#1 roleRef!:RoleRef#3 subjects:[Subject#2
ClusterTrustBundleProjection labelSelector:LabelSelector#3* name:s#1* optional:b#5* path!:s#4 signerName:s#2*
  user:i#6*
Condition lastTransitionTime!:t#4 message!:s#6 observedGeneration:i#3 reason!:s#5 status!:s#2 type!:s#1
ConfigMap binaryData:{y#3 data:{s#2 immutable:b#4* metadata:ObjectMeta#1
ConfigMapEnvSource name:s#1.1 optional:b#2*
ConfigMapKeySelector key!:s#2 name:s#1.1 optional:b#3*
ConfigMapNodeConfigSource kubeletConfigKey!:s#5 name!:s#2 namespace!:s#1 resourceVersion:s#4 uid:s#3
ConfigMapProjection items:[KeyToPath#2 name:s#1.1 optional:b#4*
ConfigMapVolumeSource defaultMode:i#3* defaultUser:i#5* items:[KeyToPath#2 name:s#1.1 optional:b#4*
Container args:[s#4 command:[s#3 env:[EnvVar#7 envFrom:[EnvFromSource#19 image:s#2 imagePullPolicy:s#14
  lifecycle:Lifecycle#12* livenessProbe:Probe#10* name!:s#1 ports:[ContainerPort#6 readinessProbe:Probe#11*
  resizePolicy:[ContainerResizePolicy#23 resources:ResourceRequirements#8 restartPolicy:s#24*
  restartPolicyRules:[ContainerRestartRule#25 securityContext:SecurityContext#15* startupProbe:Probe#22* stdin:b#16
  stdinOnce:b#17 terminationMessagePath:s#13 terminationMessagePolicy:s#20 tty:b#18 volumeDevices:[VolumeDevice#21
  volumeMounts:[VolumeMount#9 workingDir:s#5
ContainerExtendedResourceRequest containerName!:s#1 requestName!:s#3 resourceName!:s#2
ContainerImage names:[s#1 sizeBytes:i#2
ContainerPort containerPort!:i#3 hostIP:s#5 hostPort:i#2 name:s#1 protocol:s#4
ContainerResizePolicy resourceName!:s#1 restartPolicy!:s#2
ContainerRestartRule action!:s#1 exitCodes:ContainerRestartRuleOnExitCodes#2*
ContainerRestartRuleOnExitCodes operator!:s#1 values:[i#2
ContainerState running:ContainerStateRunning#2* terminated:ContainerStateTerminated#3*
  waiting:ContainerStateWaiting#1*
ContainerStateRunning startedAt:t#1
ContainerStateTerminated containerID:s#7 exitCode!:i#1 finishedAt:t#6 message:s#4 reason:s#3 signal:i#2
  startedAt:t#5
ContainerStateWaiting message:s#2 reason:s#1
ContainerStatus allocatedResources:{q#10 allocatedResourcesStatus:[ResourceStatus#14 containerID:s#8 image!:s#6
  imageID:s#7 lastState:ContainerState#3 name!:s#1 ready!:b#4 resources:ResourceRequirements#11* restartCount!:i#5
  started:b#9* state:ContainerState#2 stopSignal:s#15* user:ContainerUser#13* volumeMounts:[VolumeMountStatus#12
ContainerUser linux:LinuxContainerUser#1*
ControllerRevision data!:o#2 metadata:ObjectMeta#1 revision:i#3
CronJob metadata:ObjectMeta#1 spec!:CronJobSpec#2 status:CronJobStatus#3
CronJobSpec concurrencyPolicy:s#3 failedJobsHistoryLimit:i#7* jobTemplate!:JobTemplateSpec#5 schedule!:s#1
  startingDeadlineSeconds:i#2* successfulJobsHistoryLimit:i#6* suspend:b#4* timeZone:s#8*
CronJobStatus active:[ObjectReference#1 lastScheduleTime:t#4* lastSuccessfulTime:t#5*
CustomResourceColumnDefinition description:s#4 format:s#3 jsonPath!:s#6 name!:s#1 priority:i#5 type!:s#2
CustomResourceConversion strategy!:s#1 webhook:WebhookConversion#2*
CustomResourceDefinition metadata:ObjectMeta#1 spec!:CustomResourceDefinitionSpec#2
  status:CustomResourceDefinitionStatus#3
CustomResourceDefinitionCondition lastTransitionTime:t#3 message:s#5 observedGeneration:i#6 reason:s#4 status!:s#2
  type!:s#1
CustomResourceDefinitionNames categories:[s#6 kind!:s#4 listKind:s#5 plural!:s#1 shortNames:[s#3 singular:s#2
CustomResourceDefinitionSpec conversion:CustomResourceConversion#9* group!:s#1
  names!:CustomResourceDefinitionNames#3 preserveUnknownFields:b#10 scope!:s#4
  versions!:[CustomResourceDefinitionVersion#7
CustomResourceDefinitionStatus acceptedNames:CustomResourceDefinitionNames#2
  conditions:[CustomResourceDefinitionCondition#1 observedGeneration:i#4 storedVersions:[s#3
CustomResourceDefinitionVersion additionalPrinterColumns:[CustomResourceColumnDefinition#6 deprecated:b#7
  deprecationWarning:s#8* name!:s#1 schema:CustomResourceValidation#4* selectableFields:[SelectableField#9
  served!:b#2 storage!:b#3 subresources:CustomResourceSubresources#5*
CustomResourceSubresourceScale labelSelectorPath:s#3* specReplicasPath!:s#1 statusReplicasPath!:s#2
CustomResourceSubresources scale:CustomResourceSubresourceScale#2* status:o#1*
CustomResourceValidation openAPIV3Schema:JSONSchemaProps#1*
DaemonEndpoint Port!:i#1
DaemonSet metadata:ObjectMeta#1 spec!:DaemonSetSpec#2 status:DaemonSetStatus#3
DaemonSetCondition lastTransitionTime:t#3 message:s#5 reason:s#4 status:s#2 type:s#1
DaemonSetSpec minReadySeconds:i#4 revisionHistoryLimit:i#6* selector!:LabelSelector#1* template!:PodTemplateSpec#2
  updateStrategy:DaemonSetUpdateStrategy#3
DaemonSetStatus collisionCount:i#9* conditions:[DaemonSetCondition#10 currentNumberScheduled!:i#1
  desiredNumberScheduled!:i#3 numberAvailable:i#7 numberMisscheduled!:i#2 numberReady!:i#4 numberUnavailable:i#8
  observedGeneration:i#5 updatedNumberScheduled:i#6
DaemonSetUpdateStrategy rollingUpdate:RollingUpdateDaemonSet#2* type:s#1
DeleteOptions dryRun:[s#5 gracePeriodSeconds:i#1* ignoreStoreReadErrorWithClusterBreakingPotential:b#6*
  orphanDependents:b#3* preconditions:Preconditions#2* propagationPolicy:s#4*
Deployment metadata:ObjectMeta#1 spec!:DeploymentSpec#2 status:DeploymentStatus#3
DeploymentCondition lastTransitionTime:t#7 lastUpdateTime:t#6 message:s#5 reason:s#4 status:s#2 type:s#1
DeploymentSpec minReadySeconds:i#5 paused:b#7 progressDeadlineSeconds:i#9* replicas:i#1* revisionHistoryLimit:i#6*
  selector!:LabelSelector#2* strategy:DeploymentStrategy#4 template!:PodTemplateSpec#3
DeploymentStatus availableReplicas:i#4 collisionCount:i#8* conditions:[DeploymentCondition#6 observedGeneration:i#1
  readyReplicas:i#7 replicas:i#2 terminatingReplicas:i#9* unavailableReplicas:i#5 updatedReplicas:i#3
DeploymentStrategy rollingUpdate:RollingUpdateDeployment#2* type:s#1
DiscoveryV1EndpointPort appProtocol:s#4* name:s#1* port:i#3* protocol:s#2*
DownwardAPIProjection items:[DownwardAPIVolumeFile#1
DownwardAPIVolumeFile fieldRef:ObjectFieldSelector#2* mode:i#4* path!:s#1 resourceFieldRef:ResourceFieldSelector#3*
  user:i#5*
DownwardAPIVolumeSource defaultMode:i#2* defaultUser:i#3* items:[DownwardAPIVolumeFile#1
EmptyDirVolumeSource medium:s#1 mode:i#3* sizeLimit:q#2*
Endpoint addresses!:[s#1 conditions:EndpointConditions#2 deprecatedTopology:{s#5 hints:EndpointHints#8*
  hostname:s#3* nodeName:s#6* targetRef:ObjectReference#4* zone:s#7*
EndpointAddress hostname:s#3 ip!:s#1 nodeName:s#4* targetRef:ObjectReference#2*
EndpointConditions ready:b#1* serving:b#2* terminating:b#3*
EndpointHints forNodes:[ForNode#2 forZones:[ForZone#1
EndpointPort appProtocol:s#4* name:s#1 port!:i#2 protocol:s#3
EndpointSlice addressType!:s#4 endpoints:[Endpoint#2 metadata:ObjectMeta#1 ports:[DiscoveryV1EndpointPort#3
EndpointSubset addresses:[EndpointAddress#1 notReadyAddresses:[EndpointAddress#2 ports:[EndpointPort#3
Endpoints metadata:ObjectMeta#1 subsets:[EndpointSubset#2
EnvFromSource configMapRef:ConfigMapEnvSource#2* prefix:s#1 secretRef:SecretEnvSource#3*
EnvVar name!:s#1 value:s#2 valueFrom:EnvVarSource#3*
EnvVarSource configMapKeyRef:ConfigMapKeySelector#3* fieldRef:ObjectFieldSelector#1* fileKeyRef:FileKeySelector#5*
  resourceFieldRef:ResourceFieldSelector#2* secretKeyRef:SecretKeySelector#4*
EphemeralContainer args:[s#1.4 command:[s#1.3 env:[EnvVar#1.7 envFrom:[EnvFromSource#1.19 image:s#1.2
  imagePullPolicy:s#1.14 lifecycle:Lifecycle#1.12* livenessProbe:Probe#1.10* name!:s#1.1 ports:[ContainerPort#1.6
  readinessProbe:Probe#1.11* resizePolicy:[ContainerResizePolicy#1.23 resources:ResourceRequirements#1.8
  restartPolicy:s#1.24* restartPolicyRules:[ContainerRestartRule#1.25 securityContext:SecurityContext#1.15*
  startupProbe:Probe#1.22* stdin:b#1.16 stdinOnce:b#1.17 targetContainerName:s#2 terminationMessagePath:s#1.13
  terminationMessagePolicy:s#1.20 tty:b#1.18 volumeDevices:[VolumeDevice#1.21 volumeMounts:[VolumeMount#1.9
  workingDir:s#1.5
EphemeralVolumeSource volumeClaimTemplate:PersistentVolumeClaimTemplate#1*
Event action:s#12 count:i#8 eventTime:m#10 firstTimestamp:t#6 involvedObject!:ObjectReference#2 lastTimestamp:t#7
  message:s#4 metadata!:ObjectMeta#1 reason:s#3 related:ObjectReference#13* reportingComponent:s#14
  reportingInstance:s#15 series:EventSeries#11* source:EventSource#5 type:s#9
EventSeries count:i#1 lastObservedTime:m#2
EventSource component:s#1 host:s#2
EventsV1Event action:s#6 deprecatedCount:i#15 deprecatedFirstTimestamp:t#13 deprecatedLastTimestamp:t#14
  deprecatedSource:EventSource#12 eventTime!:m#2 metadata:ObjectMeta#1 note:s#10 reason:s#7
  regarding:ObjectReference#8 related:ObjectReference#9* reportingController:s#4 reportingInstance:s#5
  series:EventsV1EventSeries#3* type:s#11
EventsV1EventSeries count!:i#1 lastObservedTime!:m#2
Eviction deleteOptions:DeleteOptions#2* metadata:ObjectMeta#1
EvictionResponder name!:s#1 priority!:i#2*
ExecAction command:[s#1
ExternalDocumentation description:s#1 url:s#2
FCVolumeSource fsType:s#3 lun:i#2* readOnly:b#4 targetWWNs:[s#1 wwids:[s#5
FieldSelectorAttributes rawSelector:s#1 requirements:[FieldSelectorRequirement#2
FieldSelectorRequirement key!:s#1 operator!:s#2 values:[s#3
FileKeySelector key!:s#3 optional:b#4* path!:s#2 volumeName!:s#1
FlexPersistentVolumeSource driver!:s#1 fsType:s#2 options:{s#5 readOnly:b#4 secretRef:SecretReference#3*
FlexVolumeSource driver!:s#1 fsType:s#2 options:{s#5 readOnly:b#4 secretRef:LocalObjectReference#3*
FlockerVolumeSource datasetName:s#1 datasetUUID:s#2
ForNode name!:s#1
ForZone name!:s#1
GCEPersistentDiskVolumeSource fsType:s#2 partition:i#3 pdName!:s#1 readOnly:b#4
GRPCAction mode:s#3* port!:i#1 service:s#2*
GitRepoVolumeSource directory:s#3 repository!:s#1 revision:s#2
GlusterfsPersistentVolumeSource endpoints!:s#1 endpointsNamespace:s#4* path!:s#2 readOnly:b#3
GlusterfsVolumeSource endpoints!:s#1 path!:s#2 readOnly:b#3
HTTPGetAction host:s#3 httpHeaders:[HTTPHeader#5 path:s#1 port!:x#2 protocol:s#6* scheme:s#4
HTTPHeader name!:s#1 value!:s#2
HTTPIngressPath backend!:IngressBackend#2 path:s#1 pathType!:s#3*
HTTPIngressRuleValue paths!:[HTTPIngressPath#1
HostAlias hostnames:[s#2 ip!:s#1
HostIP ip!:s#1
HostPathVolumeSource path!:s#1 type:s#2*
IPBlock cidr!:s#1 except:[s#2
ISCSIPersistentVolumeSource chapAuthDiscovery:b#8 chapAuthSession:b#11 fsType:s#5 initiatorName:s#12* iqn!:s#2
  iscsiInterface:s#4 lun!:i#3 portals:[s#7 readOnly:b#6 secretRef:SecretReference#10* targetPortal!:s#1
ISCSIVolumeSource chapAuthDiscovery:b#8 chapAuthSession:b#11 fsType:s#5 initiatorName:s#12* iqn!:s#2
  iscsiInterface:s#4 lun!:i#3 portals:[s#7 readOnly:b#6 secretRef:LocalObjectReference#10* targetPortal!:s#1
ImageVolumeSource pullPolicy:s#2 reference:s#1
ImageVolumeStatus imageRef!:s#1
Ingress metadata:ObjectMeta#1 spec:IngressSpec#2 status:IngressStatus#3
IngressBackend resource:TypedLocalObjectReference#3* service:IngressServiceBackend#4*
IngressClass metadata:ObjectMeta#1 spec:IngressClassSpec#2
IngressClassParametersReference apiGroup:s#1* kind!:s#2 name!:s#3 namespace:s#5* scope:s#4*
IngressClassSpec controller:s#1 parameters:IngressClassParametersReference#2*
IngressLoadBalancerIngress hostname:s#2 ip:s#1 ports:[IngressPortStatus#4
IngressLoadBalancerStatus ingress:[IngressLoadBalancerIngress#1
IngressPortStatus error:s#3* port!:i#1 protocol!:s#2
IngressRule host:s#1 http:HTTPIngressRuleValue#2.1*
IngressServiceBackend name!:s#1 port:ServiceBackendPort#2
IngressSpec defaultBackend:IngressBackend#1* ingressClassName:s#4* rules:[IngressRule#3 tls:[IngressTLS#2
IngressStatus loadBalancer:IngressLoadBalancerStatus#1
IngressTLS hosts:[s#1 secretName:s#2
JSONSchemaProps $ref:s#3* $schema:s#2 additionalItems:?JSONSchemaProps#33* additionalProperties:?JSONSchemaProps#30*
  allOf:[JSONSchemaProps#25 anyOf:[JSONSchemaProps#27 default:?#8* definitions:{JSONSchemaProps#34 dependencies:?#32
  description:s#4 enum:[?#20 example:?#36* exclusiveMaximum:b#10 exclusiveMinimum:b#12
  externalDocs:ExternalDocumentation#35* format:s#6 id:s#1 items:?JSONSchemaProps#24* maxItems:i#16* maxLength:i#13*
  maxProperties:i#21* maximum:f#9* minItems:i#17* minLength:i#14* minProperties:i#22* minimum:f#11* multipleOf:f#19*
  not:JSONSchemaProps#28* nullable:b#37 oneOf:[JSONSchemaProps#26 pattern:s#15 patternProperties:{JSONSchemaProps#31
  properties:{JSONSchemaProps#29 required:[s#23 title:s#7 type:s#5 uniqueItems:b#18
  x-kubernetes-embedded-resource:b#39 x-kubernetes-int-or-string:b#40 x-kubernetes-list-map-keys:[s#41
  x-kubernetes-list-type:s#42* x-kubernetes-map-type:s#43* x-kubernetes-preserve-unknown-fields:b#38*
  x-kubernetes-validations:[ValidationRule#44
Job metadata:ObjectMeta#1 spec:JobSpec#2 status:JobStatus#3
JobCondition lastProbeTime:t#3 lastTransitionTime:t#4 message:s#6 reason:s#5 status!:s#2 type!:s#1
JobSchedulingConfiguration disruptionMode:alpha3WorkloadPodGroupDisruptionMode#3*
  resourceClaims:[alpha3WorkloadPodGroupResourceClaim#4
  schedulingConstraints:alpha3WorkloadPodGroupSchedulingConstraints#2*
  schedulingPolicy:alpha3WorkloadPodGroupSchedulingPolicy#1*
JobSpec activeDeadlineSeconds:i#3* backoffLimit:i#7* backoffLimitPerIndex:i#12* completionMode:s#9* completions:i#2*
  managedBy:s#15* manualSelector:b#5* maxFailedIndexes:i#13* parallelism:i#1* podFailurePolicy:PodFailurePolicy#11*
  podReplacementPolicy:s#14* scheduling:JobSchedulingConfiguration#17* selector:LabelSelector#4*
  successPolicy:SuccessPolicy#16* suspend:b#10* template!:PodTemplateSpec#6 ttlSecondsAfterFinished:i#8*
JobStatus active:i#4 completedIndexes:s#7 completionTime:t#3* conditions:[JobCondition#1 failed:i#6
  failedIndexes:s#10* ready:i#9* startTime:t#2* succeeded:i#5 terminating:i#11*
  uncountedTerminatedPods:UncountedTerminatedPods#8*
JobTemplateSpec metadata:ObjectMeta#1 spec:JobSpec#2
KeyToPath key!:s#1 mode:i#3* path!:s#2 user:i#4*
LabelSelector matchExpressions:[LabelSelectorRequirement#2 matchLabels:{s#1
LabelSelectorAttributes rawSelector:s#1 requirements:[LabelSelectorRequirement#2
LabelSelectorRequirement key!:s#1 operator!:s#2 values:[s#3
Lease metadata:ObjectMeta#1 spec:LeaseSpec#2
LeaseSpec acquireTime:m#3* holderIdentity:s#1* leaseDurationSeconds:i#2* leaseTransitions:i#5* preferredHolder:s#7*
  renewTime:m#4* strategy:s#6*
Lifecycle postStart:LifecycleHandler#1* preStop:LifecycleHandler#2* stopSignal:s#3*
LifecycleHandler exec:ExecAction#1* httpGet:HTTPGetAction#2* sleep:SleepAction#4* tcpSocket:TCPSocketAction#3*
LimitRange metadata:ObjectMeta#1 spec:LimitRangeSpec#2
LimitRangeItem default:{q#4 defaultRequest:{q#5 max:{q#2 maxLimitRequestRatio:{q#6 min:{q#3 type!:s#1
LimitRangeSpec limits!:[LimitRangeItem#1
LinuxContainerUser gid!:i#2 supplementalGroups:[i#3 uid!:i#1
LoadBalancerIngress hostname:s#2 ip:s#1 ipMode:s#3* ports:[PortStatus#4
LoadBalancerStatus ingress:[LoadBalancerIngress#1
LocalObjectReference name:s#1
LocalSubjectAccessReview metadata:ObjectMeta#1 spec!:SubjectAccessReviewSpec#2
LocalVolumeSource fsType:s#2* path!:s#1
ManagedFieldsEntry apiVersion:s#3 fieldsType:s#6 fieldsV1:o#7* manager:s#1 operation:s#2 subresource:s#8 time:t#4*
MatchCondition expression!:s#2 name!:s#1
ModifyVolumeStatus status!:s#2 targetVolumeAttributesClassName:s#1
MutatingWebhook admissionReviewVersions!:[s#8 clientConfig!:AdmissionregistrationV1WebhookClientConfig#2
  failurePolicy:s#4* matchConditions:[MatchCondition#12 matchPolicy:s#9* name!:s#1
  namespaceSelector:LabelSelector#5* objectSelector:LabelSelector#11* reinvocationPolicy:s#10*
  rules:[RuleWithOperations#3 sideEffects!:s#6* timeoutSeconds:i#7*
MutatingWebhookConfiguration metadata:ObjectMeta#1 webhooks:[MutatingWebhook#2
NFSVolumeSource path!:s#2 readOnly:b#3 server!:s#1
Namespace metadata:ObjectMeta#1 spec:NamespaceSpec#2 status:NamespaceStatus#3
NamespaceCondition lastTransitionTime:t#4 message:s#6 reason:s#5 status!:s#2 type!:s#1
NamespaceSpec finalizers:[s#1
NamespaceStatus conditions:[NamespaceCondition#2 phase:s#1
NetworkPolicy metadata:ObjectMeta#1 spec:NetworkPolicySpec#2
NetworkPolicyEgressRule ports:[NetworkPolicyPort#1 to:[NetworkPolicyPeer#2
NetworkPolicyIngressRule from:[NetworkPolicyPeer#2 ports:[NetworkPolicyPort#1
NetworkPolicyPeer ipBlock:IPBlock#3* namespaceSelector:LabelSelector#2* podSelector:LabelSelector#1*
NetworkPolicyPort endPort:i#3* port:x#2* protocol:s#1*
NetworkPolicySpec egress:[NetworkPolicyEgressRule#3 ingress:[NetworkPolicyIngressRule#2 podSelector:LabelSelector#1
  policyTypes:[s#4
Node metadata:ObjectMeta#1 spec:NodeSpec#2 status:NodeStatus#3
NodeAddress address!:s#2 type!:s#1
NodeAffinity preferredDuringSchedulingIgnoredDuringExecution:[PreferredSchedulingTerm#2
  requiredDuringSchedulingIgnoredDuringExecution:NodeSelector#1*
NodeAllocatableMappedResources name!:s#1 quantity!:q#2*
NodeAllocatableOverheadResources name!:s#1 perContainer:q#3* perPod:q#2*
NodeAllocatableResourceClaimStatus containers:[s#2 mapping:[NodeAllocatableMappedResources#4
  overhead:[NodeAllocatableOverheadResources#5 resourceClaimName!:s#1
NodeCondition lastHeartbeatTime:t#3 lastTransitionTime:t#4 message:s#6 reason:s#5 status!:s#2 type!:s#1
NodeConfigSource configMap:ConfigMapNodeConfigSource#2*
NodeConfigStatus active:NodeConfigSource#2* assigned:NodeConfigSource#1* error:s#4 lastKnownGood:NodeConfigSource#3*
NodeDaemonEndpoints kubeletEndpoint:DaemonEndpoint#1
NodeFeatures supplementalGroupsPolicy:b#1*
NodePodPreemptionPolicy disableResizePreemption:[s#1
NodeRuntimeHandler features:NodeRuntimeHandlerFeatures#2* name:s#1
NodeRuntimeHandlerFeatures recursiveReadOnlyMounts:b#1* userNamespaces:b#2*
NodeSelector nodeSelectorTerms!:[NodeSelectorTerm#1
NodeSelectorRequirement key!:s#1 operator!:s#2 values:[s#3
NodeSelectorTerm matchExpressions:[NodeSelectorRequirement#1 matchFields:[NodeSelectorRequirement#2
NodeSpec configSource:NodeConfigSource#6* externalID:s#2 podCIDR:s#1 podCIDRs:[s#7
  podPreemptionPolicy:NodePodPreemptionPolicy#8* providerID:s#3 taints:[Taint#5 unschedulable:b#4
NodeStatus addresses:[NodeAddress#5 allocatable:{q#2 capacity:{q#1 conditions:[NodeCondition#4
  config:NodeConfigStatus#11* daemonEndpoints:NodeDaemonEndpoints#6 declaredFeatures:[s#14 features:NodeFeatures#13*
  images:[ContainerImage#8 nodeInfo:NodeSystemInfo#7 phase:s#3 runtimeHandlers:[NodeRuntimeHandler#12
  volumesAttached:[AttachedVolume#10 volumesInUse:[s#9
NodeSwapStatus capacity:i#1*
NodeSystemInfo architecture!:s#10 bootID!:s#3 containerRuntimeVersion!:s#6 kernelVersion!:s#4 kubeProxyVersion!:s#8
  kubeletVersion!:s#7 machineID!:s#1 operatingSystem!:s#9 osImage!:s#5 runningInUserNamespace:b#12*
  swap:NodeSwapStatus#11* systemUUID!:s#2
NonResourceAttributes path:s#1 verb:s#2
ObjectFieldSelector apiVersion:s#1 fieldPath!:s#2
ObjectMeta annotations:{s#12 creationTimestamp:t#8 deletionGracePeriodSeconds:i#10* deletionTimestamp:t#9*
  finalizers:[s#14 generateName:s#2 generation:i#7 labels:{s#11 managedFields:[ManagedFieldsEntry#17 name:s#1
  namespace:s#3 ownerReferences:[OwnerReference#13 resourceVersion:s#6 selfLink:s#4 uid:s#5
ObjectReference apiVersion:s#5 fieldPath:s#7 kind:s#1 name:s#3 namespace:s#2 resourceVersion:s#6 uid:s#4
OwnerReference apiVersion!:s#5 blockOwnerDeletion:b#7* controller:b#6* kind!:s#1 name!:s#3 uid!:s#4
PersistentVolume metadata:ObjectMeta#1 spec:PersistentVolumeSpec#2 status:PersistentVolumeStatus#3
PersistentVolumeClaim metadata:ObjectMeta#1 spec:PersistentVolumeClaimSpec#2 status:PersistentVolumeClaimStatus#3
PersistentVolumeClaimCondition lastProbeTime:t#3 lastTransitionTime:t#4 message:s#6 reason:s#5 status!:s#2 type!:s#1
PersistentVolumeClaimSpec accessModes:[s#1 dataSource:TypedLocalObjectReference#7*
  dataSourceRef:TypedObjectReference#8* resources:VolumeResourceRequirements#2 selector:LabelSelector#4*
  storageClassName:s#5* volumeAttributesClassName:s#9* volumeMode:s#6* volumeName:s#3
PersistentVolumeClaimStatus accessModes:[s#2 allocatedResourceStatuses:{s#7 allocatedResources:{q#5 capacity:{q#3
  conditions:[PersistentVolumeClaimCondition#4 currentVolumeAttributesClassName:s#8*
  healthStatus:VolumeHealthStatus#10* modifyVolumeStatus:ModifyVolumeStatus#9* phase:s#1
PersistentVolumeClaimTemplate metadata:ObjectMeta#1 spec!:PersistentVolumeClaimSpec#2
PersistentVolumeClaimVolumeSource claimName!:s#1 readOnly:b#2
PersistentVolumeSpec accessModes:[s#3 awsElasticBlockStore:AWSElasticBlockStoreVolumeSource#2.2*
  azureDisk:AzureDiskVolumeSource#2.16* azureFile:AzureFilePersistentVolumeSource#2.13* capacity:{q#1
  cephfs:CephFSPersistentVolumeSource#2.9* cinder:CinderPersistentVolumeSource#2.8* claimRef:ObjectReference#4*
  csi:CSIPersistentVolumeSource#2.22* fc:FCVolumeSource#2.10* flexVolume:FlexPersistentVolumeSource#2.12*
  flocker:FlockerVolumeSource#2.11* gcePersistentDisk:GCEPersistentDiskVolumeSource#2.1*
  glusterfs:GlusterfsPersistentVolumeSource#2.4* hostPath:HostPathVolumeSource#2.3*
  iscsi:ISCSIPersistentVolumeSource#2.7* local:LocalVolumeSource#2.20* mountOptions:[s#7 nfs:NFSVolumeSource#2.5*
  nodeAffinity:VolumeNodeAffinity#9* persistentVolumeReclaimPolicy:s#5
  photonPersistentDisk:PhotonPersistentDiskVolumeSource#2.17* portworxVolume:PortworxVolumeSource#2.18*
  quobyte:QuobyteVolumeSource#2.15* rbd:RBDPersistentVolumeSource#2.6* scaleIO:ScaleIOPersistentVolumeSource#2.19*
  storageClassName:s#6 storageos:StorageOSPersistentVolumeSource#2.21* volumeAttributesClassName:s#10*
  volumeMode:s#8* vsphereVolume:VsphereVirtualDiskVolumeSource#2.14*
PersistentVolumeStatus lastPhaseTransitionTime:t#4* message:s#2 phase:s#1 reason:s#3
PhotonPersistentDiskVolumeSource fsType:s#2 pdID!:s#1
Pod metadata:ObjectMeta#1 spec:PodSpec#2 status:PodStatus#3
PodAffinity preferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm#2
  requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm#1
PodAffinityTerm labelSelector:LabelSelector#1* matchLabelKeys:[s#5 mismatchLabelKeys:[s#6
  namespaceSelector:LabelSelector#4* namespaces:[s#2 topologyKey!:s#3
PodAntiAffinity preferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm#2
  requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm#1
PodCertificateProjection certificateChainPath:s#6 credentialBundlePath:s#4 keyPath:s#5 keyType!:s#2
  maxExpirationSeconds:i#3* signerName!:s#1 user:i#8* userAnnotations:{s#7
PodCondition lastProbeTime:t#3 lastTransitionTime:t#4 message:s#6 observedGeneration:i#7 reason:s#5 status!:s#2
  type!:s#1
PodDNSConfig nameservers:[s#1 options:[PodDNSConfigOption#3 searches:[s#2
PodDNSConfigOption name:s#1 value:s#2*
PodDisruptionBudget metadata:ObjectMeta#1 spec:PodDisruptionBudgetSpec#2 status:PodDisruptionBudgetStatus#3
PodDisruptionBudgetSpec maxUnavailable:x#3* minAvailable:x#1* selector:LabelSelector#2*
  unhealthyPodEvictionPolicy:s#4*
PodDisruptionBudgetStatus conditions:[Condition#7 currentHealthy:i#4 desiredHealthy:i#5 disruptedPods:{t#2
  disruptionsAllowed:i#3 expectedPods:i#6 observedGeneration:i#1
PodExtendedResourceClaimStatus requestMappings!:[ContainerExtendedResourceRequest#1 resourceClaimName!:s#2
PodFailurePolicy rules!:[PodFailurePolicyRule#1
PodFailurePolicyOnExitCodesRequirement containerName:s#1* operator!:s#2 values!:[i#3
PodFailurePolicyOnPodConditionsPattern status:s#2 type!:s#1
PodFailurePolicyRule action!:s#1 onExitCodes:PodFailurePolicyOnExitCodesRequirement#2*
  onPodConditions:[PodFailurePolicyOnPodConditionsPattern#3
PodIP ip!:s#1
PodOS name!:s#1
PodReadinessGate conditionType!:s#1
PodResourceClaim name!:s#1 resourceClaimName:s#3* resourceClaimTemplateName:s#4*
PodResourceClaimStatus name!:s#1 resourceClaimName:s#2*
PodSchedulingGate name!:s#1
PodSchedulingGroup podGroupName:s#1*
PodSecurityContext appArmorProfile:AppArmorProfile#11* fsGroup:i#5* fsGroupChangePolicy:s#9* runAsGroup:i#6*
  runAsNonRoot:b#3* runAsUser:i#2* seLinuxChangePolicy:s#13* seLinuxOptions:SELinuxOptions#1*
  seccompProfile:SeccompProfile#10* supplementalGroups:[i#4 supplementalGroupsPolicy:s#12* sysctls:[Sysctl#7
  windowsOptions:WindowsSecurityContextOptions#8*
PodSpec activeDeadlineSeconds:i#5* affinity:Affinity#18* automountServiceAccountToken:b#21* containers!:[Container#2
  dnsConfig:PodDNSConfig#26* dnsPolicy:s#6 enableServiceLinks:b#30* ephemeralContainers:[EphemeralContainer#34
  evictionResponders:[EvictionResponder#44 hostAliases:[HostAlias#23 hostIPC:b#13 hostNetwork:b#11 hostPID:b#12
  hostUsers:b#37* hostname:s#16 hostnameOverride:s#41* imagePullSecrets:[LocalObjectReference#15
  initContainers:[Container#20 nodeName:s#10 nodeSelector:{s#7 os:PodOS#36* overhead:{q#32 preemptionPolicy:s#31*
  priority:i#25* priorityClassName:s#24 readinessGates:[PodReadinessGate#28 resourceClaims:[PodResourceClaim#39
  resources:ResourceRequirements#40* restartPolicy:s#3 runtimeClassName:s#29* schedulerName:s#19
  schedulingGates:[PodSchedulingGate#38 schedulingGroup:PodSchedulingGroup#43*
  securityContext:PodSecurityContext#14* serviceAccount:s#9 serviceAccountName:s#8 setHostnameAsFQDN:b#35*
  shareProcessNamespace:b#27* subdomain:s#17 terminationGracePeriodSeconds:i#4* tolerations:[Toleration#22
  topologySpreadConstraints:[TopologySpreadConstraint#33 volumes:[Volume#1
PodStatus allocatedResources:{q#19 conditions:[PodCondition#2 containerStatuses:[ContainerStatus#8
  ephemeralContainerStatuses:[ContainerStatus#13 extendedResourceClaimStatus:PodExtendedResourceClaimStatus#18*
  hostIP:s#5 hostIPs:[HostIP#16 initContainerStatuses:[ContainerStatus#10 message:s#3
  nodeAllocatableResourceClaimStatuses:[NodeAllocatableResourceClaimStatus#21 nominatedNodeName:s#11
  observedGeneration:i#17 phase:s#1 podIP:s#6 podIPs:[PodIP#12 qosClass:s#9 reason:s#4 resize:s#14
  resourceClaimStatuses:[PodResourceClaimStatus#15 resources:ResourceRequirements#20* startTime:t#7*
  volumeHealth:[PodVolumeHealth#22
PodTemplate metadata:ObjectMeta#1 template:PodTemplateSpec#2
PodTemplateSpec metadata:ObjectMeta#1 spec:PodSpec#2
PodVolumeHealth healthConditions:[VolumeHealthCondition#2 lastTransitionTime:t#3 name!:s#1
PolicyRule apiGroups:[s#2 nonResourceURLs:[s#5 resourceNames:[s#4 resources:[s#3 verbs!:[s#1
PortStatus error:s#3* port!:i#1 protocol!:s#2
PortworxVolumeSource fsType:s#2 readOnly:b#3 volumeID!:s#1
Preconditions resourceVersion:s#2* uid:s#1*
PreferredSchedulingTerm preference!:NodeSelectorTerm#2 weight!:i#1
PriorityClass description:s#4 globalDefault:b#3 metadata:ObjectMeta#1 preemptionPolicy:s#5* value:i#2
Probe exec:ExecAction#1.1* failureThreshold:i#6 grpc:GRPCAction#1.4* httpGet:HTTPGetAction#1.2*
  initialDelaySeconds:i#2 periodSeconds:i#4 successThreshold:i#5 tcpSocket:TCPSocketAction#1.3*
  terminationGracePeriodSeconds:i#7* timeoutSeconds:i#3
ProjectedVolumeSource defaultMode:i#2* defaultUser:i#3* sources:[VolumeProjection#1
QuobyteVolumeSource group:s#5 readOnly:b#3 registry!:s#1 tenant:s#6 user:s#4 volume!:s#2
RBDPersistentVolumeSource fsType:s#3 image!:s#2 keyring:s#6 monitors!:[s#1 pool:s#4 readOnly:b#8
  secretRef:SecretReference#7* user:s#5
RBDVolumeSource fsType:s#3 image!:s#2 keyring:s#6 monitors!:[s#1 pool:s#4 readOnly:b#8
  secretRef:LocalObjectReference#7* user:s#5
ReplicaSet metadata:ObjectMeta#1 spec!:ReplicaSetSpec#2 status:ReplicaSetStatus#3
ReplicaSetCondition lastTransitionTime:t#3 message:s#5 reason:s#4 status:s#2 type:s#1
ReplicaSetSpec minReadySeconds:i#4 replicas:i#1* selector!:LabelSelector#2* template:PodTemplateSpec#3
ReplicaSetStatus availableReplicas:i#5 conditions:[ReplicaSetCondition#6 fullyLabeledReplicas:i#2
  observedGeneration:i#3 readyReplicas:i#4 replicas!:i#1 terminatingReplicas:i#7*
ReplicationController metadata:ObjectMeta#1 spec:ReplicationControllerSpec#2 status:ReplicationControllerStatus#3
ReplicationControllerCondition lastTransitionTime:t#3 message:s#5 reason:s#4 status!:s#2 type!:s#1
ReplicationControllerSpec minReadySeconds:i#4 replicas:i#1* selector:{s#2 template:PodTemplateSpec#3*
ReplicationControllerStatus availableReplicas:i#5 conditions:[ReplicationControllerCondition#6
  fullyLabeledReplicas:i#2 observedGeneration:i#3 readyReplicas:i#4 replicas!:i#1
ResourceAttributes fieldSelector:FieldSelectorAttributes#8* group:s#3 labelSelector:LabelSelectorAttributes#9*
  name:s#7 namespace:s#1 resource:s#5 subresource:s#6 verb:s#2 version:s#4
ResourceClaim name!:s#1 request:s#2
ResourceFieldSelector containerName:s#1 divisor:q#3 resource!:s#2
ResourceHealth health:s#2 message:s#6* resourceID!:s#1
ResourceQuota metadata:ObjectMeta#1 spec:ResourceQuotaSpec#2 status:ResourceQuotaStatus#3
ResourceQuotaSpec hard:{q#1 scopeSelector:ScopeSelector#3* scopes:[s#2
ResourceQuotaStatus hard:{q#1 used:{q#2
ResourceRequirements claims:[ResourceClaim#3 limits:{q#1 requests:{q#2
ResourceStatus name!:s#1 resources:[ResourceHealth#2
Role metadata:ObjectMeta#1 rules:[PolicyRule#2
RoleBinding metadata:ObjectMeta#1 roleRef!:RoleRef#3 subjects:[Subject#2
RoleRef apiGroup:s#1 kind!:s#2 name!:s#3
RollingUpdateDaemonSet maxSurge:x#2* maxUnavailable:x#1*
RollingUpdateDeployment maxSurge:x#2* maxUnavailable:x#1*
RollingUpdateStatefulSetStrategy maxUnavailable:x#2* partition:i#1*
RuleWithOperations apiGroups:[s#2.1 apiVersions:[s#2.2 operations:[s#1 resources:[s#2.3 scope:s#2.4*
SELinuxOptions level:s#4 role:s#2 type:s#3 user:s#1
Scale metadata:ObjectMeta#1 spec:ScaleSpec#2 status:ScaleStatus#3
ScaleIOPersistentVolumeSource fsType:s#9 gateway!:s#1 protectionDomain:s#5 readOnly:b#10
  secretRef!:SecretReference#3* sslEnabled:b#4 storageMode:s#7 storagePool:s#6 system!:s#2 volumeName:s#8
ScaleIOVolumeSource fsType:s#9 gateway!:s#1 protectionDomain:s#5 readOnly:b#10 secretRef!:LocalObjectReference#3*
  sslEnabled:b#4 storageMode:s#7 storagePool:s#6 system!:s#2 volumeName:s#8
ScaleSpec replicas:i#1
ScaleStatus replicas!:i#1 selector:s#2
ScopeSelector matchExpressions:[ScopedResourceSelectorRequirement#1
ScopedResourceSelectorRequirement operator!:s#2 scopeName!:s#1 values:[s#3
SeccompProfile localhostProfile:s#2* type!:s#1
Secret data:{y#2 immutable:b#5* metadata:ObjectMeta#1 stringData:{s#4 type:s#3
SecretEnvSource name:s#1.1 optional:b#2*
SecretKeySelector key!:s#2 name:s#1.1 optional:b#3*
SecretProjection items:[KeyToPath#2 name:s#1.1 optional:b#4*
SecretReference name:s#1 namespace:s#2
SecretVolumeSource defaultMode:i#3* defaultUser:i#5* items:[KeyToPath#2 optional:b#4* secretName:s#1
SecurityContext allowPrivilegeEscalation:b#7* appArmorProfile:AppArmorProfile#12* capabilities:Capabilities#1*
  privileged:b#2* procMount:s#9* readOnlyRootFilesystem:b#6* runAsGroup:i#8* runAsNonRoot:b#5* runAsUser:i#4*
  seLinuxOptions:SELinuxOptions#3* seccompProfile:SeccompProfile#11*
  windowsOptions:WindowsSecurityContextOptions#10*
SelectableField jsonPath!:s#1
SelfSubjectAccessReview metadata:ObjectMeta#1 spec!:SelfSubjectAccessReviewSpec#2
SelfSubjectAccessReviewSpec nonResourceAttributes:NonResourceAttributes#2* resourceAttributes:ResourceAttributes#1*
SelfSubjectReview metadata:ObjectMeta#1
SelfSubjectRulesReview metadata:ObjectMeta#1 spec!:SelfSubjectRulesReviewSpec#2
SelfSubjectRulesReviewSpec namespace:s#1
Service metadata:ObjectMeta#1 spec:ServiceSpec#2 status:ServiceStatus#3
ServiceAccount automountServiceAccountToken:b#4* imagePullSecrets:[LocalObjectReference#3 metadata:ObjectMeta#1
  secrets:[ObjectReference#2
ServiceAccountTokenProjection audience:s#1 expirationSeconds:i#2* path!:s#3 user:i#4*
ServiceBackendPort name:s#1 number:i#2
ServicePort appProtocol:s#6* name:s#1 nodePort:i#5 port!:i#3 protocol:s#2 targetPort:x#4
ServiceSpec allocateLoadBalancerNodePorts:b#20* clusterIP:s#3 clusterIPs:[s#18 externalIPs:[s#5 externalName:s#10
  externalTrafficPolicy:s#11 healthCheckNodePort:i#12 internalTrafficPolicy:s#22* ipFamilies:[s#19
  ipFamilyPolicy:s#17* loadBalancerClass:s#21* loadBalancerIP:s#8 loadBalancerSourceRanges:[s#9 ports:[ServicePort#1
  publishNotReadyAddresses:b#13 selector:{s#2 sessionAffinity:s#7 sessionAffinityConfig:SessionAffinityConfig#14*
  trafficDistribution:s#23* type:s#4
ServiceStatus conditions:[Condition#2 loadBalancer:LoadBalancerStatus#1
SessionAffinityConfig clientIP:ClientIPConfig#1*
SleepAction seconds!:i#1
StatefulSet metadata:ObjectMeta#1 spec!:StatefulSetSpec#2 status:StatefulSetStatus#3
StatefulSetCondition lastTransitionTime:t#3 message:s#5 reason:s#4 status:s#2 type:s#1
StatefulSetOrdinals start:i#1
StatefulSetPersistentVolumeClaimRetentionPolicy whenDeleted:s#1 whenScaled:s#2
StatefulSetSpec minReadySeconds:i#9 ordinals:StatefulSetOrdinals#11*
  persistentVolumeClaimRetentionPolicy:StatefulSetPersistentVolumeClaimRetentionPolicy#10* podManagementPolicy:s#6
  replicas:i#1* revisionHistoryLimit:i#8* selector!:LabelSelector#2* serviceName:s#5 template!:PodTemplateSpec#3
  updateStrategy:StatefulSetUpdateStrategy#7 volumeClaimTemplates:[PersistentVolumeClaim#4
StatefulSetStatus availableReplicas:i#11 collisionCount:i#9* conditions:[StatefulSetCondition#10 currentReplicas:i#4
  currentRevision:s#6 observedGeneration:i#1 readyReplicas:i#3 replicas!:i#2 updateRevision:s#7 updatedReplicas:i#5
StatefulSetUpdateStrategy rollingUpdate:RollingUpdateStatefulSetStrategy#2* type:s#1
StorageClass allowVolumeExpansion:b#6* allowedTopologies:[TopologySelectorTerm#8 metadata:ObjectMeta#1
  mountOptions:[s#5 parameters:{s#3 provisioner!:s#2 reclaimPolicy:s#4* volumeBindingMode:s#7*
StorageOSPersistentVolumeSource fsType:s#3 readOnly:b#4 secretRef:ObjectReference#5* volumeName:s#1
  volumeNamespace:s#2
StorageOSVolumeSource fsType:s#3 readOnly:b#4 secretRef:LocalObjectReference#5* volumeName:s#1 volumeNamespace:s#2
Subject apiGroup:s#2 kind!:s#1 name!:s#3 namespace:s#4
SubjectAccessReview metadata:ObjectMeta#1 spec!:SubjectAccessReviewSpec#2
SubjectAccessReviewSpec extra:{[s#5 groups:[s#4 nonResourceAttributes:NonResourceAttributes#2*
  resourceAttributes:ResourceAttributes#1* uid:s#6 user:s#3
SuccessPolicy rules!:[SuccessPolicyRule#1
SuccessPolicyRule succeededCount:i#2* succeededIndexes:s#1*
Sysctl name!:s#1 value!:s#2
TCPSocketAction host:s#2 port!:x#1
Taint effect!:s#3 key!:s#1 timeAdded:t#4* value:s#2
TokenRequest metadata:ObjectMeta#1 spec!:TokenRequestSpec#2
TokenRequestSpec audiences:[s#1 boundObjectRef:BoundObjectReference#3* expirationSeconds:i#4*
TokenReview metadata:ObjectMeta#1 spec!:TokenReviewSpec#2
TokenReviewSpec audiences:[s#2 token:s#1
Toleration effect:s#4 key:s#1 operator:s#2 tolerationSeconds:i#5* value:s#3
TopologySelectorLabelRequirement key!:s#1 values!:[s#2
TopologySelectorTerm matchLabelExpressions:[TopologySelectorLabelRequirement#1
TopologySpreadConstraint labelSelector:LabelSelector#4* matchLabelKeys:[s#8 maxSkew!:i#1 minDomains:i#5*
  nodeAffinityPolicy:s#6* nodeTaintsPolicy:s#7* topologyKey!:s#2 whenUnsatisfiable!:s#3
TypedLocalObjectReference apiGroup:s#1* kind!:s#2 name!:s#3
TypedObjectReference apiGroup:s#1* kind!:s#2 name!:s#3 namespace:s#4*
UncountedTerminatedPods failed:[s#2 succeeded:[s#1
V2ContainerResourceMetricSource container!:s#3 name!:s#1 target!:V2MetricTarget#2
V2ContainerResourceMetricStatus container!:s#3 current!:V2MetricValueStatus#2 name!:s#1
V2CrossVersionObjectReference apiVersion:s#3 kind!:s#1 name!:s#2
V2ExternalMetricSource metric!:V2MetricIdentifier#1 target!:V2MetricTarget#2
V2ExternalMetricStatus current!:V2MetricValueStatus#2 metric!:V2MetricIdentifier#1
V2HPAScalingPolicy periodSeconds!:i#3 type!:s#1 value!:i#2
V2HPAScalingRules policies:[V2HPAScalingPolicy#2 selectPolicy:s#1* stabilizationWindowSeconds:i#3* tolerance:q#4*
V2HorizontalPodAutoscaler metadata:ObjectMeta#1 spec!:V2HorizontalPodAutoscalerSpec#2
  status:V2HorizontalPodAutoscalerStatus#3
V2HorizontalPodAutoscalerBehavior scaleDown:V2HPAScalingRules#2* scaleUp:V2HPAScalingRules#1*
V2HorizontalPodAutoscalerCondition lastTransitionTime:t#3 message:s#5 observedGeneration:i#6* reason:s#4 status!:s#2
  type!:s#1
V2HorizontalPodAutoscalerSpec behavior:V2HorizontalPodAutoscalerBehavior#5* maxReplicas!:i#3 metrics:[V2MetricSpec#4
  minReplicas:i#2* scaleTargetRef!:V2CrossVersionObjectReference#1
V2HorizontalPodAutoscalerStatus conditions:[V2HorizontalPodAutoscalerCondition#6 currentMetrics:[V2MetricStatus#5
  currentReplicas:i#3 desiredReplicas!:i#4 lastScaleTime:t#2* observedGeneration:i#1*
V2MetricIdentifier name!:s#1 selector:LabelSelector#2*
V2MetricSpec containerResource:V2ContainerResourceMetricSource#7* external:V2ExternalMetricSource#5*
  object:V2ObjectMetricSource#2* pods:V2PodsMetricSource#3* resource:V2ResourceMetricSource#4* type!:s#1
V2MetricStatus containerResource:V2ContainerResourceMetricStatus#7* external:V2ExternalMetricStatus#5*
  object:V2ObjectMetricStatus#2* pods:V2PodsMetricStatus#3* resource:V2ResourceMetricStatus#4* type!:s#1
V2MetricTarget averageUtilization:i#4* averageValue:q#3* type!:s#1 value:q#2*
V2MetricValueStatus averageUtilization:i#3* averageValue:q#2* value:q#1*
V2ObjectMetricSource describedObject!:V2CrossVersionObjectReference#1 metric!:V2MetricIdentifier#3
  target!:V2MetricTarget#2
V2ObjectMetricStatus current!:V2MetricValueStatus#2 describedObject!:V2CrossVersionObjectReference#3
  metric!:V2MetricIdentifier#1
V2PodsMetricSource metric!:V2MetricIdentifier#1 target!:V2MetricTarget#2
V2PodsMetricStatus current!:V2MetricValueStatus#2 metric!:V2MetricIdentifier#1
V2ResourceMetricSource name!:s#1 target!:V2MetricTarget#2
V2ResourceMetricStatus current!:V2MetricValueStatus#2 name!:s#1
ValidatingWebhook admissionReviewVersions!:[s#8 clientConfig!:AdmissionregistrationV1WebhookClientConfig#2
  failurePolicy:s#4* matchConditions:[MatchCondition#11 matchPolicy:s#9* name!:s#1
  namespaceSelector:LabelSelector#5* objectSelector:LabelSelector#10* rules:[RuleWithOperations#3 sideEffects!:s#6*
  timeoutSeconds:i#7*
ValidatingWebhookConfiguration metadata:ObjectMeta#1 webhooks:[ValidatingWebhook#2
ValidationRule fieldPath:s#5 message:s#2 messageExpression:s#3 optionalOldSelf:b#6* reason:s#4* rule!:s#1
Volume awsElasticBlockStore:AWSElasticBlockStoreVolumeSource#2.4* azureDisk:AzureDiskVolumeSource#2.22*
  azureFile:AzureFileVolumeSource#2.18* cephfs:CephFSVolumeSource#2.14* cinder:CinderVolumeSource#2.13*
  configMap:ConfigMapVolumeSource#2.19* csi:CSIVolumeSource#2.28* downwardAPI:DownwardAPIVolumeSource#2.16*
  emptyDir:EmptyDirVolumeSource#2.2* ephemeral:EphemeralVolumeSource#2.29* fc:FCVolumeSource#2.17*
  flexVolume:FlexVolumeSource#2.12* flocker:FlockerVolumeSource#2.15*
  gcePersistentDisk:GCEPersistentDiskVolumeSource#2.3* gitRepo:GitRepoVolumeSource#2.5*
  glusterfs:GlusterfsVolumeSource#2.9* hostPath:HostPathVolumeSource#2.1* image:ImageVolumeSource#2.30*
  iscsi:ISCSIVolumeSource#2.8* name!:s#1 nfs:NFSVolumeSource#2.7*
  persistentVolumeClaim:PersistentVolumeClaimVolumeSource#2.10*
  photonPersistentDisk:PhotonPersistentDiskVolumeSource#2.23* portworxVolume:PortworxVolumeSource#2.24*
  projected:ProjectedVolumeSource#2.26* quobyte:QuobyteVolumeSource#2.21* rbd:RBDVolumeSource#2.11*
  scaleIO:ScaleIOVolumeSource#2.25* secret:SecretVolumeSource#2.6* storageos:StorageOSVolumeSource#2.27*
  vsphereVolume:VsphereVirtualDiskVolumeSource#2.20*
VolumeAttachment metadata:ObjectMeta#1 spec!:VolumeAttachmentSpec#2 status:VolumeAttachmentStatus#3
VolumeAttachmentSource inlineVolumeSpec:PersistentVolumeSpec#2* persistentVolumeName:s#1*
VolumeAttachmentSpec attacher!:s#1 nodeName!:s#3 source!:VolumeAttachmentSource#2
VolumeAttachmentStatus attachError:VolumeError#3* attached!:b#1 attachmentMetadata:{s#2 detachError:VolumeError#4*
VolumeDevice devicePath!:s#2 name!:s#1
VolumeError errorCode:i#3* message:s#2 time:t#1
VolumeHealthCondition message:s#3 reason!:s#2 status!:s#1
VolumeHealthStatus healthConditions:[VolumeHealthCondition#1 lastTransitionTime:t#2
VolumeMount bindMountOptions:[s#8 mountPath!:s#3 mountPropagation:s#5* name!:s#1 readOnly:b#2 recursiveReadOnly:s#7*
  subPath:s#4 subPathExpr:s#6
VolumeMountStatus mountPath!:s#2 name!:s#1 readOnly:b#3 recursiveReadOnly:s#4* volumeStatus:VolumeStatus#5*
VolumeNodeAffinity required:NodeSelector#1*
VolumeProjection clusterTrustBundle:ClusterTrustBundleProjection#5* configMap:ConfigMapProjection#3*
  downwardAPI:DownwardAPIProjection#2* podCertificate:PodCertificateProjection#6* secret:SecretProjection#1*
  serviceAccountToken:ServiceAccountTokenProjection#4*
VolumeResourceRequirements limits:{q#1 requests:{q#2
VolumeStatus image:ImageVolumeStatus#1*
VsphereVirtualDiskVolumeSource fsType:s#2 storagePolicyID:s#4 storagePolicyName:s#3 volumePath!:s#1
WebhookConversion clientConfig:ApiextensionsV1WebhookClientConfig#2* conversionReviewVersions!:[s#3
WeightedPodAffinityTerm podAffinityTerm!:PodAffinityTerm#2 weight!:i#1
WindowsSecurityContextOptions gmsaCredentialSpec:s#2* gmsaCredentialSpecName:s#1* hostProcess:b#4*
  runAsUserName:s#3*
alpha3TopologyConstraint key!:s
alpha3WorkloadPodGroupDisruptionMode all:o single:o
alpha3WorkloadPodGroupGangSchedulingPolicy minCount:i
alpha3WorkloadPodGroupResourceClaim name!:s resourceClaimName:s resourceClaimTemplateName:s
alpha3WorkloadPodGroupSchedulingConstraints topology:[alpha3TopologyConstraint
alpha3WorkloadPodGroupSchedulingPolicy basic:o gang:alpha3WorkloadPodGroupGangSchedulingPolicy
)";

// Whose type is not named like their kind.
struct OtherName {
  std::string_view kind, version, type;
};
constexpr OtherName kOtherNames[] = {
    {"Event.events.k8s.io", "v1", "EventsV1Event"},
    {"HorizontalPodAutoscaler.autoscaling", "v2", "V2HorizontalPodAutoscaler"},
    {"HorizontalPodAutoscaler.autoscaling", "v1", "AutoscalingV1HorizontalPodAutoscaler"}};

using Table = std::map<std::string_view, ApiType, std::less<>>;

const Table& Types() {
  static const auto* const kTable = [] {
    auto* table = new Table;
    ApiType* type = nullptr;
    for (absl::string_view line : absl::StrSplit(absl::string_view(kTypes.data(), kTypes.size()), '\n')) {
      bool first = line.empty() || line[0] != ' ';
      for (absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
        const std::string_view text(word.data(), word.size());
        if (std::exchange(first, false)) {
          type = &(*table)[text];
          type->name = text;
          continue;
        }
        const size_t colon = text.find(':');
        const bool required = text[colon - 1] == '!';
        const size_t sharp = std::min(text.find('#', colon), text.size());
        ApiField field{text.substr(0, colon - (required ? 1 : 0)),
                       text.substr(colon + 1, sharp - colon - 1),
                       required,
                       {},
                       text.ends_with('*')};
        size_t place = 0;
        for (const char c : text.substr(sharp)) {
          if (c == '.') ++place;
          if (c >= '0' && c <= '9') field.numbers[place] = static_cast<uint16_t>(field.numbers[place] * 10 + (c - '0'));
        }
        type->fields.push_back(field);
      }
    }
    return table;
  }();
  return *kTable;
}

void Walk(std::string_view type, const json& value, const std::string& path, std::vector<std::string>* unknown) {
  if (type.front() == '[') {
    size_t index = 0;
    for (const json& item : Items(value))
      Walk(type.substr(1), item, path + "[" + std::to_string(index++) + "]", unknown);
    return;
  }
  if (!value.is_object()) return;
  if (type.front() == '?') type.remove_prefix(1);
  if (type.empty()) return;
  if (type.front() == '{') {
    for (const auto& [key, item] : value.items()) Walk(type.substr(1), item, path + "." + key, unknown);
    return;
  }
  const ApiType* fields = FindApiType(type);
  if (fields == nullptr) return;
  for (const auto& [key, item] : value.items()) {
    const std::string inner = path.empty() ? key : path + "." + key;
    if (path.empty() && (key == "apiVersion" || key == "kind")) continue;
    if (const ApiField* field = fields->Find(key); field != nullptr) {
      Walk(field->type, item, inner, unknown);
    } else {
      unknown->push_back(inner);
    }
  }
}

// "[]v1.Container"
std::string GoName(std::string_view type, std::string_view field) {
  static constexpr std::string_view kLong[] = {"activeDeadlineSeconds",
                                               "deletionGracePeriodSeconds",
                                               "expirationSeconds",
                                               "fsGroup",
                                               "generation",
                                               "observedGeneration",
                                               "runAsGroup",
                                               "runAsUser",
                                               "terminationGracePeriodSeconds",
                                               "tolerationSeconds"};
  switch (type.front()) {
    case '[':
      return "[]" + GoName(type.substr(1), "");
    case '{':
      return "map[string]" + GoName(type.substr(1), "");
    case 's':
      return "string";
    case 'i':
      return std::find(std::begin(kLong), std::end(kLong), field) != std::end(kLong) ? "int64" : "int32";
    case 'f':
      return "float64";
    case 'b':
      return "bool";
    case 'y':
      return "[]uint8";
    case 't':
      return "v1.Time";
    case 'm':
      return "v1.MicroTime";
    case 'q':
      return "resource.Quantity";
    default:
      return "v1." + std::string(type);
  }
}

bool Readable(std::string_view type, const json& value) {
  if (value.is_null()) return true;
  switch (type.front()) {
    case '[':
      return value.is_array();
    case '{':
      return value.is_object();
    case 's':
    case 't':
    case 'm':
    case 'y':
      return value.is_string();
    case 'q':
      return value.is_string() || value.is_number();
    case 'x':
      return value.is_string() || value.is_number_integer();
    case 'i':
      return value.is_number_integer();
    case 'f':
      return value.is_number();
    case 'b':
      return value.is_boolean();
    case 'o':
    case '?':
      return true;
    default:
      return value.is_object();
  }
}

// apimachinery: pkg/api/resource, ParseQuantity(). Empty: it is one.
std::string_view QuantityError(std::string_view text) {
  constexpr std::string_view kFormat =
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
  static constexpr std::string_view kSuffixes[] = {"",  "n", "u",  "m",  "k",  "M",  "G",  "T",
                                                   "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  const auto skip = [&](std::string_view among) {
    const size_t end = std::min(text.find_first_not_of(among), text.size());
    const std::string_view skipped = text.substr(0, end);
    text.remove_prefix(end);
    return skipped;
  };
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) text.remove_prefix(1);
  const std::string_view digits = skip("0123456789.");
  if (digits.find_first_not_of('.') == std::string_view::npos || std::count(digits.begin(), digits.end(), '.') > 1)
    return kFormat;
  const std::string_view suffix = skip("eEinumkKMGTP");
  const bool sign = !text.empty() && (text.front() == '+' || text.front() == '-');
  if (sign) text.remove_prefix(1);
  const std::string_view exponent = skip("0123456789");
  if (!text.empty()) return kFormat;
  if (!exponent.empty() && (suffix == "e" || suffix == "E")) return {};
  const bool known = std::find(std::begin(kSuffixes), std::end(kSuffixes), suffix) != std::end(kSuffixes);
  return known && exponent.empty() && !sign ? "" : "unable to parse quantity's suffix";
}

// `owner`: the struct that the field is of.
std::string FirstUnreadable(std::string_view owner, std::string_view field, std::string_view type, const json& value,
                            const std::string& path) {
  if (!Readable(type, value)) {
    const std::string is = value.is_boolean() ? "bool" : value.type_name();
    return "json: cannot unmarshal " + is + " into Go struct field " + std::string(owner) + "." + path + " of type " +
           GoName(type, field);
  }
  if (type.front() == 'q' && value.is_string()) return std::string(QuantityError(value.get_ref<const std::string&>()));
  if (type.front() == '?') type.remove_prefix(1);
  if (type.empty()) return {};
  if (type.front() == '[' || type.front() == '{') {
    for (const json& item : value) {
      if (std::string found = FirstUnreadable(owner, "", type.substr(1), item, path); !found.empty()) return found;
    }
    return {};
  }
  const ApiType* inner = value.is_object() ? FindApiType(type) : nullptr;
  if (inner == nullptr) return {};
  for (const auto& [key, item] : value.items()) {
    const ApiField* known = inner->Find(key);
    if (known == nullptr) continue;
    std::string found = FirstUnreadable(inner->name, key, known->type, item, path.empty() ? key : path + "." + key);
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace

const ApiField* ApiType::Find(std::string_view field) const {
  for (const ApiField& each : fields) {
    if (each.name == field) return &each;
  }
  return nullptr;
}

const ApiType* FindApiType(std::string_view name) {
  const auto it = Types().find(name);
  return it == Types().end() ? nullptr : &it->second;
}

const ApiType* ApiTypeOf(const Resource& resource) {
  if (resource.custom || resource.review_only) return nullptr;
  const std::string kind = resource.kind + "." + resource.group;
  for (const OtherName& other : kOtherNames) {
    if (other.kind == kind && other.version == resource.version) return FindApiType(other.type);
  }
  return FindApiType(resource.kind);
}

void ForEachApiType(const std::function<void(const ApiType&)>& visit) {
  for (const auto& [name, type] : Types()) visit(type);
}

std::string UnreadableField(const ApiType& type, const json& body) {
  return FirstUnreadable(type.name, "", type.name, body, "");
}

std::vector<std::string> UnknownFields(const ApiType& type, const json& body) {
  std::vector<std::string> unknown;
  Walk(type.name, body, "", &unknown);
  return unknown;
}

}  // namespace wavetank::fakekube::http
