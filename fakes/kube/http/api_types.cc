#include "fakes/kube/http/api_types.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_split.h"
#include "core/base/json_access.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

// A type per line, its fields after it; what is indented goes on with the line above. `!`: required. Types: s text,
// i whole number, f number, b truth value, t time, y bytes, x number or text, o anything; [T a list, {T a mapping from
// text, or another type of this table. The fields of Kubernetes 1.27 and what came later.
constexpr std::string_view kTypes = R"(
APIService metadata:ObjectMeta spec:APIServiceSpec status:APIServiceStatus
APIServiceCondition lastTransitionTime:t message:s reason:s status!:s type!:s
APIServiceSpec caBundle:y group:s groupPriorityMinimum!:i insecureSkipTLSVerify:b
  service:ApiregistrationV1ServiceReference version:s versionPriority!:i
APIServiceStatus conditions:[APIServiceCondition
AWSElasticBlockStoreVolumeSource fsType:s partition:i readOnly:b volumeID!:s
AdmissionregistrationV1ServiceReference name!:s namespace!:s path:s port:i
AdmissionregistrationV1WebhookClientConfig caBundle:y service:AdmissionregistrationV1ServiceReference url:s
Affinity nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAntiAffinity
AggregationRule clusterRoleSelectors:[LabelSelector
ApiregistrationV1ServiceReference name:s namespace:s port:i
AppArmorProfile localhostProfile:s type!:s
AttachedVolume devicePath!:s name!:s
AzureDiskVolumeSource cachingMode:s diskName!:s diskURI!:s fsType:s kind:s readOnly:b
AzureFilePersistentVolumeSource readOnly:b secretName!:s secretNamespace:s shareName!:s
AzureFileVolumeSource readOnly:b secretName!:s shareName!:s
CSIPersistentVolumeSource controllerExpandSecretRef:SecretReference controllerPublishSecretRef:SecretReference
  driver!:s fsType:s nodeExpandSecretRef:SecretReference nodePublishSecretRef:SecretReference
  nodeStageSecretRef:SecretReference readOnly:b volumeAttributes:{s volumeHandle!:s
CSIVolumeSource driver!:s fsType:s nodePublishSecretRef:LocalObjectReference readOnly:b volumeAttributes:{s
Capabilities add:[s drop:[s
CephFSPersistentVolumeSource monitors!:[s path:s readOnly:b secretFile:s secretRef:SecretReference user:s
CephFSVolumeSource monitors!:[s path:s readOnly:b secretFile:s secretRef:LocalObjectReference user:s
CertificateSigningRequest metadata:ObjectMeta spec!:CertificateSigningRequestSpec
  status:CertificateSigningRequestStatus
CertificateSigningRequestCondition lastTransitionTime:t lastUpdateTime:t message:s reason:s status!:s type!:s
CertificateSigningRequestSpec expirationSeconds:i extra:{[s groups:[s request!:y signerName!:s uid:s usages:[s
  username:s
CertificateSigningRequestStatus certificate:y conditions:[CertificateSigningRequestCondition
CinderPersistentVolumeSource fsType:s readOnly:b secretRef:SecretReference volumeID!:s
CinderVolumeSource fsType:s readOnly:b secretRef:LocalObjectReference volumeID!:s
ClientIPConfig timeoutSeconds:i
ClusterRole aggregationRule:AggregationRule metadata:ObjectMeta rules:[PolicyRule
ClusterRoleBinding metadata:ObjectMeta roleRef!:RoleRef subjects:[Subject
ClusterTrustBundleProjection labelSelector:LabelSelector name:s optional:b path!:s signerName:s user:i
Condition lastTransitionTime!:t message!:s observedGeneration:i reason!:s status!:s type!:s
ConfigMap binaryData:{y data:{s immutable:b metadata:ObjectMeta
ConfigMapEnvSource name:s optional:b
ConfigMapKeySelector key!:s name:s optional:b
ConfigMapNodeConfigSource kubeletConfigKey!:s name!:s namespace!:s resourceVersion:s uid:s
ConfigMapProjection items:[KeyToPath name:s optional:b
ConfigMapVolumeSource defaultMode:i defaultUser:i items:[KeyToPath name:s optional:b
Container args:[s command:[s env:[EnvVar envFrom:[EnvFromSource image:s imagePullPolicy:s lifecycle:Lifecycle
  livenessProbe:Probe name!:s ports:[ContainerPort readinessProbe:Probe resizePolicy:[ContainerResizePolicy
  resources:ResourceRequirements restartPolicy:s restartPolicyRules:[ContainerRestartRule
  securityContext:SecurityContext startupProbe:Probe stdin:b stdinOnce:b terminationMessagePath:s
  terminationMessagePolicy:s tty:b volumeDevices:[VolumeDevice volumeMounts:[VolumeMount workingDir:s
ContainerExtendedResourceRequest containerName!:s requestName!:s resourceName!:s
ContainerImage names:[s sizeBytes:i
ContainerPort containerPort!:i hostIP:s hostPort:i name:s protocol:s
ContainerResizePolicy resourceName!:s restartPolicy!:s
ContainerRestartRule action!:s exitCodes:ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes operator!:s values:[i
ContainerState running:ContainerStateRunning terminated:ContainerStateTerminated waiting:ContainerStateWaiting
ContainerStateRunning startedAt:t
ContainerStateTerminated containerID:s exitCode!:i finishedAt:t message:s reason:s signal:i startedAt:t
ContainerStateWaiting message:s reason:s
ContainerStatus allocatedResources:{s allocatedResourcesStatus:[ResourceStatus containerID:s image!:s imageID!:s
  lastState:ContainerState name!:s ready!:b resources:ResourceRequirements restartCount!:i started:b
  state:ContainerState stopSignal:s user:ContainerUser volumeMounts:[VolumeMountStatus
ContainerUser linux:LinuxContainerUser
ControllerRevision data!:o metadata:ObjectMeta revision:i
CronJob metadata:ObjectMeta spec!:CronJobSpec status:CronJobStatus
CronJobSpec concurrencyPolicy:s failedJobsHistoryLimit:i jobTemplate!:JobTemplateSpec schedule!:s
  startingDeadlineSeconds:i successfulJobsHistoryLimit:i suspend:b timeZone:s
CronJobStatus active:[ObjectReference lastScheduleTime:t lastSuccessfulTime:t
DaemonEndpoint Port!:i
DaemonSet metadata:ObjectMeta spec!:DaemonSetSpec status:DaemonSetStatus
DaemonSetCondition lastTransitionTime:t message:s reason:s status:s type:s
DaemonSetSpec minReadySeconds:i revisionHistoryLimit:i selector!:LabelSelector template!:PodTemplateSpec
  updateStrategy:DaemonSetUpdateStrategy
DaemonSetStatus collisionCount:i conditions:[DaemonSetCondition currentNumberScheduled!:i desiredNumberScheduled!:i
  numberAvailable:i numberMisscheduled!:i numberReady!:i numberUnavailable:i observedGeneration:i
  updatedNumberScheduled:i
DaemonSetUpdateStrategy rollingUpdate:RollingUpdateDaemonSet type:s
Deployment metadata:ObjectMeta spec!:DeploymentSpec status:DeploymentStatus
DeploymentCondition lastTransitionTime:t lastUpdateTime:t message:s reason:s status:s type:s
DeploymentSpec minReadySeconds:i paused:b progressDeadlineSeconds:i replicas:i revisionHistoryLimit:i
  selector!:LabelSelector strategy:DeploymentStrategy template!:PodTemplateSpec
DeploymentStatus availableReplicas:i collisionCount:i conditions:[DeploymentCondition observedGeneration:i
  readyReplicas:i replicas:i terminatingReplicas:i unavailableReplicas:i updatedReplicas:i
DeploymentStrategy rollingUpdate:RollingUpdateDeployment type:s
DiscoveryV1EndpointPort appProtocol:s name:s port:i protocol:s
DownwardAPIProjection items:[DownwardAPIVolumeFile
DownwardAPIVolumeFile fieldRef:ObjectFieldSelector mode:i path!:s resourceFieldRef:ResourceFieldSelector user:i
DownwardAPIVolumeSource defaultMode:i defaultUser:i items:[DownwardAPIVolumeFile
EmptyDirVolumeSource medium:s mode:i sizeLimit:s
Endpoint addresses!:[s conditions:EndpointConditions deprecatedTopology:{s hints:EndpointHints hostname:s nodeName:s
  targetRef:ObjectReference zone:s
EndpointAddress hostname:s ip!:s nodeName:s targetRef:ObjectReference
EndpointConditions ready:b serving:b terminating:b
EndpointHints forNodes:[ForNode forZones:[ForZone
EndpointPort appProtocol:s name:s port!:i protocol:s
EndpointSlice addressType!:s endpoints:[Endpoint metadata:ObjectMeta ports:[DiscoveryV1EndpointPort
EndpointSubset addresses:[EndpointAddress notReadyAddresses:[EndpointAddress ports:[EndpointPort
Endpoints metadata:ObjectMeta subsets:[EndpointSubset
EnvFromSource configMapRef:ConfigMapEnvSource prefix:s secretRef:SecretEnvSource
EnvVar name!:s value:s valueFrom:EnvVarSource
EnvVarSource configMapKeyRef:ConfigMapKeySelector fieldRef:ObjectFieldSelector fileKeyRef:FileKeySelector
  resourceFieldRef:ResourceFieldSelector secretKeyRef:SecretKeySelector
EphemeralContainer args:[s command:[s env:[EnvVar envFrom:[EnvFromSource image:s imagePullPolicy:s lifecycle:Lifecycle
  livenessProbe:Probe name!:s ports:[ContainerPort readinessProbe:Probe resizePolicy:[ContainerResizePolicy
  resources:ResourceRequirements restartPolicy:s restartPolicyRules:[ContainerRestartRule
  securityContext:SecurityContext startupProbe:Probe stdin:b stdinOnce:b targetContainerName:s
  terminationMessagePath:s terminationMessagePolicy:s tty:b volumeDevices:[VolumeDevice volumeMounts:[VolumeMount
  workingDir:s
EphemeralVolumeSource volumeClaimTemplate:PersistentVolumeClaimTemplate
Event action:s count:i eventTime:t firstTimestamp:t involvedObject!:ObjectReference lastTimestamp:t message:s
  metadata!:ObjectMeta reason:s related:ObjectReference reportingComponent:s reportingInstance:s series:EventSeries
  source:EventSource type:s
EventSeries count:i lastObservedTime:t
EventSource component:s host:s
EventsV1Event action:s deprecatedCount:i deprecatedFirstTimestamp:t deprecatedLastTimestamp:t
  deprecatedSource:EventSource eventTime!:t metadata:ObjectMeta note:s reason:s regarding:ObjectReference
  related:ObjectReference reportingController:s reportingInstance:s series:EventsV1EventSeries type:s
EventsV1EventSeries count!:i lastObservedTime!:t
EvictionResponder name!:s priority!:i
ExecAction command:[s
FCVolumeSource fsType:s lun:i readOnly:b targetWWNs:[s wwids:[s
FileKeySelector key!:s optional:b path!:s volumeName!:s
FlexPersistentVolumeSource driver!:s fsType:s options:{s readOnly:b secretRef:SecretReference
FlexVolumeSource driver!:s fsType:s options:{s readOnly:b secretRef:LocalObjectReference
FlockerVolumeSource datasetName:s datasetUUID:s
ForNode name!:s
ForZone name!:s
GCEPersistentDiskVolumeSource fsType:s partition:i pdName!:s readOnly:b
GRPCAction mode:s port!:i service:s
GitRepoVolumeSource directory:s repository!:s revision:s
GlusterfsPersistentVolumeSource endpoints!:s endpointsNamespace:s path!:s readOnly:b
GlusterfsVolumeSource endpoints!:s path!:s readOnly:b
HTTPGetAction host:s httpHeaders:[HTTPHeader path:s port!:x protocol:s scheme:s
HTTPHeader name!:s value!:s
HTTPIngressPath backend!:IngressBackend path:s pathType!:s
HTTPIngressRuleValue paths!:[HTTPIngressPath
HostAlias hostnames:[s ip!:s
HostIP ip!:s
HostPathVolumeSource path!:s type:s
IPBlock cidr!:s except:[s
ISCSIPersistentVolumeSource chapAuthDiscovery:b chapAuthSession:b fsType:s initiatorName:s iqn!:s iscsiInterface:s
  lun!:i portals:[s readOnly:b secretRef:SecretReference targetPortal!:s
ISCSIVolumeSource chapAuthDiscovery:b chapAuthSession:b fsType:s initiatorName:s iqn!:s iscsiInterface:s lun!:i
  portals:[s readOnly:b secretRef:LocalObjectReference targetPortal!:s
ImageVolumeSource pullPolicy:s reference:s
ImageVolumeStatus imageRef!:s
Ingress metadata:ObjectMeta spec:IngressSpec status:IngressStatus
IngressBackend resource:TypedLocalObjectReference service:IngressServiceBackend
IngressClass metadata:ObjectMeta spec:IngressClassSpec
IngressClassParametersReference apiGroup:s kind!:s name!:s namespace:s scope:s
IngressClassSpec controller:s parameters:IngressClassParametersReference
IngressLoadBalancerIngress hostname:s ip:s ports:[IngressPortStatus
IngressLoadBalancerStatus ingress:[IngressLoadBalancerIngress
IngressPortStatus error:s port!:i protocol!:s
IngressRule host:s http:HTTPIngressRuleValue
IngressServiceBackend name!:s port:ServiceBackendPort
IngressSpec defaultBackend:IngressBackend ingressClassName:s rules:[IngressRule tls:[IngressTLS
IngressStatus loadBalancer:IngressLoadBalancerStatus
IngressTLS hosts:[s secretName:s
Job metadata:ObjectMeta spec:JobSpec status:JobStatus
JobCondition lastProbeTime:t lastTransitionTime:t message:s reason:s status!:s type!:s
JobSchedulingConfiguration disruptionMode:alpha3WorkloadPodGroupDisruptionMode
  resourceClaims:[alpha3WorkloadPodGroupResourceClaim
  schedulingConstraints:alpha3WorkloadPodGroupSchedulingConstraints
  schedulingPolicy:alpha3WorkloadPodGroupSchedulingPolicy
JobSpec activeDeadlineSeconds:i backoffLimit:i backoffLimitPerIndex:i completionMode:s completions:i managedBy:s
  manualSelector:b maxFailedIndexes:i parallelism:i podFailurePolicy:PodFailurePolicy podReplacementPolicy:s
  scheduling:JobSchedulingConfiguration selector:LabelSelector successPolicy:SuccessPolicy suspend:b
  template!:PodTemplateSpec ttlSecondsAfterFinished:i
JobStatus active:i completedIndexes:s completionTime:t conditions:[JobCondition failed:i failedIndexes:s ready:i
  startTime:t succeeded:i terminating:i uncountedTerminatedPods:UncountedTerminatedPods
JobTemplateSpec metadata:ObjectMeta spec:JobSpec
KeyToPath key!:s mode:i path!:s user:i
LabelSelector matchExpressions:[LabelSelectorRequirement matchLabels:{s
LabelSelectorRequirement key!:s operator!:s values:[s
Lease metadata:ObjectMeta spec:LeaseSpec
LeaseSpec acquireTime:t holderIdentity:s leaseDurationSeconds:i leaseTransitions:i preferredHolder:s renewTime:t
  strategy:s
Lifecycle postStart:LifecycleHandler preStop:LifecycleHandler stopSignal:s
LifecycleHandler exec:ExecAction httpGet:HTTPGetAction sleep:SleepAction tcpSocket:TCPSocketAction
LimitRange metadata:ObjectMeta spec:LimitRangeSpec
LimitRangeItem default:{s defaultRequest:{s max:{s maxLimitRequestRatio:{s min:{s type!:s
LimitRangeSpec limits!:[LimitRangeItem
LinuxContainerUser gid!:i supplementalGroups:[i uid!:i
LoadBalancerIngress hostname:s ip:s ipMode:s ports:[PortStatus
LoadBalancerStatus ingress:[LoadBalancerIngress
LocalObjectReference name:s
LocalVolumeSource fsType:s path!:s
ManagedFieldsEntry apiVersion:s fieldsType:s fieldsV1:o manager:s operation:s subresource:s time:t
MatchCondition expression!:s name!:s
ModifyVolumeStatus status!:s targetVolumeAttributesClassName:s
MutatingWebhook admissionReviewVersions!:[s clientConfig!:AdmissionregistrationV1WebhookClientConfig failurePolicy:s
  matchConditions:[MatchCondition matchPolicy:s name!:s namespaceSelector:LabelSelector objectSelector:LabelSelector
  reinvocationPolicy:s rules:[RuleWithOperations sideEffects!:s timeoutSeconds:i
MutatingWebhookConfiguration metadata:ObjectMeta webhooks:[MutatingWebhook
NFSVolumeSource path!:s readOnly:b server!:s
Namespace metadata:ObjectMeta spec:NamespaceSpec status:NamespaceStatus
NamespaceCondition lastTransitionTime:t message:s reason:s status!:s type!:s
NamespaceSpec finalizers:[s
NamespaceStatus conditions:[NamespaceCondition phase:s
NetworkPolicy metadata:ObjectMeta spec:NetworkPolicySpec
NetworkPolicyEgressRule ports:[NetworkPolicyPort to:[NetworkPolicyPeer
NetworkPolicyIngressRule from:[NetworkPolicyPeer ports:[NetworkPolicyPort
NetworkPolicyPeer ipBlock:IPBlock namespaceSelector:LabelSelector podSelector:LabelSelector
NetworkPolicyPort endPort:i port:x protocol:s
NetworkPolicySpec egress:[NetworkPolicyEgressRule ingress:[NetworkPolicyIngressRule podSelector:LabelSelector
  policyTypes:[s
Node metadata:ObjectMeta spec:NodeSpec status:NodeStatus
NodeAddress address!:s type!:s
NodeAffinity preferredDuringSchedulingIgnoredDuringExecution:[PreferredSchedulingTerm
  requiredDuringSchedulingIgnoredDuringExecution:NodeSelector
NodeAllocatableMappedResources name!:s quantity!:s
NodeAllocatableOverheadResources name!:s perContainer:s perPod:s
NodeAllocatableResourceClaimStatus containers:[s mapping:[NodeAllocatableMappedResources
  overhead:[NodeAllocatableOverheadResources resourceClaimName!:s
NodeCondition lastHeartbeatTime:t lastTransitionTime:t message:s reason:s status!:s type!:s
NodeConfigSource configMap:ConfigMapNodeConfigSource
NodeConfigStatus active:NodeConfigSource assigned:NodeConfigSource error:s lastKnownGood:NodeConfigSource
NodeDaemonEndpoints kubeletEndpoint:DaemonEndpoint
NodeFeatures supplementalGroupsPolicy:b
NodePodPreemptionPolicy disableResizePreemption:[s
NodeRuntimeHandler features:NodeRuntimeHandlerFeatures name:s
NodeRuntimeHandlerFeatures recursiveReadOnlyMounts:b userNamespaces:b
NodeSelector nodeSelectorTerms!:[NodeSelectorTerm
NodeSelectorRequirement key!:s operator!:s values:[s
NodeSelectorTerm matchExpressions:[NodeSelectorRequirement matchFields:[NodeSelectorRequirement
NodeSpec configSource:NodeConfigSource externalID:s podCIDR:s podCIDRs:[s podPreemptionPolicy:NodePodPreemptionPolicy
  providerID:s taints:[Taint unschedulable:b
NodeStatus addresses:[NodeAddress allocatable:{s capacity:{s conditions:[NodeCondition config:NodeConfigStatus
  daemonEndpoints:NodeDaemonEndpoints declaredFeatures:[s features:NodeFeatures images:[ContainerImage
  nodeInfo:NodeSystemInfo phase:s runtimeHandlers:[NodeRuntimeHandler volumesAttached:[AttachedVolume volumesInUse:[s
NodeSwapStatus capacity:i
NodeSystemInfo architecture!:s bootID!:s containerRuntimeVersion!:s kernelVersion!:s kubeProxyVersion!:s
  kubeletVersion!:s machineID!:s operatingSystem!:s osImage!:s runningInUserNamespace:b swap:NodeSwapStatus
  systemUUID!:s
ObjectFieldSelector apiVersion:s fieldPath!:s
ObjectMeta annotations:{s creationTimestamp:t deletionGracePeriodSeconds:i deletionTimestamp:t finalizers:[s
  generateName:s generation:i labels:{s managedFields:[ManagedFieldsEntry name:s namespace:s
  ownerReferences:[OwnerReference resourceVersion:s selfLink:s uid:s
ObjectReference apiVersion:s fieldPath:s kind:s name:s namespace:s resourceVersion:s uid:s
OwnerReference apiVersion!:s blockOwnerDeletion:b controller:b kind!:s name!:s uid!:s
PersistentVolume metadata:ObjectMeta spec:PersistentVolumeSpec status:PersistentVolumeStatus
PersistentVolumeClaim metadata:ObjectMeta spec:PersistentVolumeClaimSpec status:PersistentVolumeClaimStatus
PersistentVolumeClaimCondition lastProbeTime:t lastTransitionTime:t message:s reason:s status!:s type!:s
PersistentVolumeClaimSpec accessModes:[s dataSource:TypedLocalObjectReference dataSourceRef:TypedObjectReference
  resources:VolumeResourceRequirements selector:LabelSelector storageClassName:s volumeAttributesClassName:s
  volumeMode:s volumeName:s
PersistentVolumeClaimStatus accessModes:[s allocatedResourceStatuses:{s allocatedResources:{s capacity:{s
  conditions:[PersistentVolumeClaimCondition currentVolumeAttributesClassName:s healthStatus:VolumeHealthStatus
  modifyVolumeStatus:ModifyVolumeStatus phase:s
PersistentVolumeClaimTemplate metadata:ObjectMeta spec!:PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource claimName!:s readOnly:b
PersistentVolumeSpec accessModes:[s awsElasticBlockStore:AWSElasticBlockStoreVolumeSource
  azureDisk:AzureDiskVolumeSource azureFile:AzureFilePersistentVolumeSource capacity:{s
  cephfs:CephFSPersistentVolumeSource cinder:CinderPersistentVolumeSource claimRef:ObjectReference
  csi:CSIPersistentVolumeSource fc:FCVolumeSource flexVolume:FlexPersistentVolumeSource flocker:FlockerVolumeSource
  gcePersistentDisk:GCEPersistentDiskVolumeSource glusterfs:GlusterfsPersistentVolumeSource
  hostPath:HostPathVolumeSource iscsi:ISCSIPersistentVolumeSource local:LocalVolumeSource mountOptions:[s
  nfs:NFSVolumeSource nodeAffinity:VolumeNodeAffinity persistentVolumeReclaimPolicy:s
  photonPersistentDisk:PhotonPersistentDiskVolumeSource portworxVolume:PortworxVolumeSource
  quobyte:QuobyteVolumeSource rbd:RBDPersistentVolumeSource scaleIO:ScaleIOPersistentVolumeSource storageClassName:s
  storageos:StorageOSPersistentVolumeSource volumeAttributesClassName:s volumeMode:s
  vsphereVolume:VsphereVirtualDiskVolumeSource
PersistentVolumeStatus lastPhaseTransitionTime:t message:s phase:s reason:s
PhotonPersistentDiskVolumeSource fsType:s pdID!:s
Pod metadata:ObjectMeta spec:PodSpec status:PodStatus
PodAffinity preferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm
  requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm
PodAffinityTerm labelSelector:LabelSelector matchLabelKeys:[s mismatchLabelKeys:[s namespaceSelector:LabelSelector
  namespaces:[s topologyKey!:s
PodAntiAffinity preferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm
  requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm
PodCertificateProjection certificateChainPath:s credentialBundlePath:s keyPath:s keyType!:s maxExpirationSeconds:i
  signerName!:s user:i userAnnotations:{s
PodCondition lastProbeTime:t lastTransitionTime:t message:s observedGeneration:i reason:s status!:s type!:s
PodDNSConfig nameservers:[s options:[PodDNSConfigOption searches:[s
PodDNSConfigOption name:s value:s
PodDisruptionBudget metadata:ObjectMeta spec:PodDisruptionBudgetSpec status:PodDisruptionBudgetStatus
PodDisruptionBudgetSpec maxUnavailable:x minAvailable:x selector:LabelSelector unhealthyPodEvictionPolicy:s
PodDisruptionBudgetStatus conditions:[Condition currentHealthy:i desiredHealthy:i disruptedPods:{t
  disruptionsAllowed:i expectedPods:i observedGeneration:i
PodExtendedResourceClaimStatus requestMappings!:[ContainerExtendedResourceRequest resourceClaimName!:s
PodFailurePolicy rules!:[PodFailurePolicyRule
PodFailurePolicyOnExitCodesRequirement containerName:s operator!:s values!:[i
PodFailurePolicyOnPodConditionsPattern status:s type!:s
PodFailurePolicyRule action!:s onExitCodes:PodFailurePolicyOnExitCodesRequirement
  onPodConditions:[PodFailurePolicyOnPodConditionsPattern
PodIP ip!:s
PodOS name!:s
PodReadinessGate conditionType!:s
PodResourceClaim name!:s resourceClaimName:s resourceClaimTemplateName:s
PodResourceClaimStatus name!:s resourceClaimName:s
PodSchedulingGate name!:s
PodSchedulingGroup podGroupName:s
PodSecurityContext appArmorProfile:AppArmorProfile fsGroup:i fsGroupChangePolicy:s runAsGroup:i runAsNonRoot:b
  runAsUser:i seLinuxChangePolicy:s seLinuxOptions:SELinuxOptions seccompProfile:SeccompProfile supplementalGroups:[i
  supplementalGroupsPolicy:s sysctls:[Sysctl windowsOptions:WindowsSecurityContextOptions
PodSpec activeDeadlineSeconds:i affinity:Affinity automountServiceAccountToken:b containers!:[Container
  dnsConfig:PodDNSConfig dnsPolicy:s enableServiceLinks:b ephemeralContainers:[EphemeralContainer
  evictionResponders:[EvictionResponder hostAliases:[HostAlias hostIPC:b hostNetwork:b hostPID:b hostUsers:b
  hostname:s hostnameOverride:s imagePullSecrets:[LocalObjectReference initContainers:[Container nodeName:s
  nodeSelector:{s os:PodOS overhead:{s preemptionPolicy:s priority:i priorityClassName:s
  readinessGates:[PodReadinessGate resourceClaims:[PodResourceClaim resources:ResourceRequirements restartPolicy:s
  runtimeClassName:s schedulerName:s schedulingGates:[PodSchedulingGate schedulingGroup:PodSchedulingGroup
  securityContext:PodSecurityContext serviceAccount:s serviceAccountName:s setHostnameAsFQDN:b shareProcessNamespace:b
  subdomain:s terminationGracePeriodSeconds:i tolerations:[Toleration
  topologySpreadConstraints:[TopologySpreadConstraint volumes:[Volume
PodStatus allocatedResources:{s conditions:[PodCondition containerStatuses:[ContainerStatus
  ephemeralContainerStatuses:[ContainerStatus extendedResourceClaimStatus:PodExtendedResourceClaimStatus hostIP:s
  hostIPs:[HostIP initContainerStatuses:[ContainerStatus message:s
  nodeAllocatableResourceClaimStatuses:[NodeAllocatableResourceClaimStatus nominatedNodeName:s observedGeneration:i
  phase:s podIP:s podIPs:[PodIP qosClass:s reason:s resize:s resourceClaimStatuses:[PodResourceClaimStatus
  resources:ResourceRequirements startTime:t volumeHealth:[PodVolumeHealth
PodTemplate metadata:ObjectMeta template:PodTemplateSpec
PodTemplateSpec metadata:ObjectMeta spec:PodSpec
PodVolumeHealth healthConditions:[VolumeHealthCondition lastTransitionTime:t name!:s
PolicyRule apiGroups:[s nonResourceURLs:[s resourceNames:[s resources:[s verbs!:[s
PortStatus error:s port!:i protocol!:s
PortworxVolumeSource fsType:s readOnly:b volumeID!:s
PreferredSchedulingTerm preference!:NodeSelectorTerm weight!:i
PriorityClass description:s globalDefault:b metadata:ObjectMeta preemptionPolicy:s value:i
Probe exec:ExecAction failureThreshold:i grpc:GRPCAction httpGet:HTTPGetAction initialDelaySeconds:i periodSeconds:i
  successThreshold:i tcpSocket:TCPSocketAction terminationGracePeriodSeconds:i timeoutSeconds:i
ProjectedVolumeSource defaultMode:i defaultUser:i sources:[VolumeProjection
QuobyteVolumeSource group:s readOnly:b registry!:s tenant:s user:s volume!:s
RBDPersistentVolumeSource fsType:s image!:s keyring:s monitors!:[s pool:s readOnly:b secretRef:SecretReference user:s
RBDVolumeSource fsType:s image!:s keyring:s monitors!:[s pool:s readOnly:b secretRef:LocalObjectReference user:s
ReplicaSet metadata:ObjectMeta spec!:ReplicaSetSpec status:ReplicaSetStatus
ReplicaSetCondition lastTransitionTime:t message:s reason:s status:s type:s
ReplicaSetSpec minReadySeconds:i replicas:i selector!:LabelSelector template:PodTemplateSpec
ReplicaSetStatus availableReplicas:i conditions:[ReplicaSetCondition fullyLabeledReplicas:i observedGeneration:i
  readyReplicas:i replicas!:i terminatingReplicas:i
ReplicationController metadata:ObjectMeta spec:ReplicationControllerSpec status:ReplicationControllerStatus
ReplicationControllerCondition lastTransitionTime:t message:s reason:s status!:s type!:s
ReplicationControllerSpec minReadySeconds:i replicas:i selector:{s template:PodTemplateSpec
ReplicationControllerStatus availableReplicas:i conditions:[ReplicationControllerCondition fullyLabeledReplicas:i
  observedGeneration:i readyReplicas:i replicas!:i
ResourceClaim name!:s request:s
ResourceFieldSelector containerName:s divisor:s resource!:s
ResourceHealth health:s message:s resourceID!:s
ResourceQuota metadata:ObjectMeta spec:ResourceQuotaSpec status:ResourceQuotaStatus
ResourceQuotaSpec hard:{s scopeSelector:ScopeSelector scopes:[s
ResourceQuotaStatus hard:{s used:{s
ResourceRequirements claims:[ResourceClaim limits:{s requests:{s
ResourceStatus name!:s resources:[ResourceHealth
Role metadata:ObjectMeta rules:[PolicyRule
RoleBinding metadata:ObjectMeta roleRef!:RoleRef subjects:[Subject
RoleRef apiGroup:s kind!:s name!:s
RollingUpdateDaemonSet maxSurge:x maxUnavailable:x
RollingUpdateDeployment maxSurge:x maxUnavailable:x
RollingUpdateStatefulSetStrategy maxUnavailable:x partition:i
RuleWithOperations apiGroups:[s apiVersions:[s operations:[s resources:[s scope:s
SELinuxOptions level:s role:s type:s user:s
ScaleIOPersistentVolumeSource fsType:s gateway!:s protectionDomain:s readOnly:b secretRef!:SecretReference
  sslEnabled:b storageMode:s storagePool:s system!:s volumeName:s
ScaleIOVolumeSource fsType:s gateway!:s protectionDomain:s readOnly:b secretRef!:LocalObjectReference sslEnabled:b
  storageMode:s storagePool:s system!:s volumeName:s
ScopeSelector matchExpressions:[ScopedResourceSelectorRequirement
ScopedResourceSelectorRequirement operator!:s scopeName!:s values:[s
SeccompProfile localhostProfile:s type!:s
Secret data:{y immutable:b metadata:ObjectMeta stringData:{s type:s
SecretEnvSource name:s optional:b
SecretKeySelector key!:s name:s optional:b
SecretProjection items:[KeyToPath name:s optional:b
SecretReference name:s namespace:s
SecretVolumeSource defaultMode:i defaultUser:i items:[KeyToPath optional:b secretName:s
SecurityContext allowPrivilegeEscalation:b appArmorProfile:AppArmorProfile capabilities:Capabilities privileged:b
  procMount:s readOnlyRootFilesystem:b runAsGroup:i runAsNonRoot:b runAsUser:i seLinuxOptions:SELinuxOptions
  seccompProfile:SeccompProfile windowsOptions:WindowsSecurityContextOptions
Service metadata:ObjectMeta spec:ServiceSpec status:ServiceStatus
ServiceAccount automountServiceAccountToken:b imagePullSecrets:[LocalObjectReference metadata:ObjectMeta
  secrets:[ObjectReference
ServiceAccountTokenProjection audience:s expirationSeconds:i path!:s user:i
ServiceBackendPort name:s number:i
ServicePort appProtocol:s name:s nodePort:i port!:i protocol:s targetPort:x
ServiceSpec allocateLoadBalancerNodePorts:b clusterIP:s clusterIPs:[s externalIPs:[s externalName:s
  externalTrafficPolicy:s healthCheckNodePort:i internalTrafficPolicy:s ipFamilies:[s ipFamilyPolicy:s
  loadBalancerClass:s loadBalancerIP:s loadBalancerSourceRanges:[s ports:[ServicePort publishNotReadyAddresses:b
  selector:{s sessionAffinity:s sessionAffinityConfig:SessionAffinityConfig trafficDistribution:s type:s
ServiceStatus conditions:[Condition loadBalancer:LoadBalancerStatus
SessionAffinityConfig clientIP:ClientIPConfig
SleepAction seconds!:i
StatefulSet metadata:ObjectMeta spec!:StatefulSetSpec status:StatefulSetStatus
StatefulSetCondition lastTransitionTime:t message:s reason:s status:s type:s
StatefulSetOrdinals start:i
StatefulSetPersistentVolumeClaimRetentionPolicy whenDeleted:s whenScaled:s
StatefulSetSpec minReadySeconds:i ordinals:StatefulSetOrdinals
  persistentVolumeClaimRetentionPolicy:StatefulSetPersistentVolumeClaimRetentionPolicy podManagementPolicy:s
  replicas:i revisionHistoryLimit:i selector!:LabelSelector serviceName:s template!:PodTemplateSpec
  updateStrategy:StatefulSetUpdateStrategy volumeClaimTemplates:[PersistentVolumeClaim
StatefulSetStatus availableReplicas:i collisionCount:i conditions:[StatefulSetCondition currentReplicas:i
  currentRevision:s observedGeneration:i readyReplicas:i replicas!:i updateRevision:s updatedReplicas:i
StatefulSetUpdateStrategy rollingUpdate:RollingUpdateStatefulSetStrategy type:s
StorageClass allowVolumeExpansion:b allowedTopologies:[TopologySelectorTerm metadata:ObjectMeta mountOptions:[s
  parameters:{s provisioner!:s reclaimPolicy:s volumeBindingMode:s
StorageOSPersistentVolumeSource fsType:s readOnly:b secretRef:ObjectReference volumeName:s volumeNamespace:s
StorageOSVolumeSource fsType:s readOnly:b secretRef:LocalObjectReference volumeName:s volumeNamespace:s
Subject apiGroup:s kind!:s name!:s namespace:s
SuccessPolicy rules!:[SuccessPolicyRule
SuccessPolicyRule succeededCount:i succeededIndexes:s
Sysctl name!:s value!:s
TCPSocketAction host:s port!:x
Taint effect!:s key!:s timeAdded:t value:s
Toleration effect:s key:s operator:s tolerationSeconds:i value:s
TopologySelectorLabelRequirement key!:s values!:[s
TopologySelectorTerm matchLabelExpressions:[TopologySelectorLabelRequirement
TopologySpreadConstraint labelSelector:LabelSelector matchLabelKeys:[s maxSkew!:i minDomains:i nodeAffinityPolicy:s
  nodeTaintsPolicy:s topologyKey!:s whenUnsatisfiable!:s
TypedLocalObjectReference apiGroup:s kind!:s name!:s
TypedObjectReference apiGroup:s kind!:s name!:s namespace:s
UncountedTerminatedPods failed:[s succeeded:[s
V2ContainerResourceMetricSource container!:s name!:s target!:V2MetricTarget
V2ContainerResourceMetricStatus container!:s current!:V2MetricValueStatus name!:s
V2CrossVersionObjectReference apiVersion:s kind!:s name!:s
V2ExternalMetricSource metric!:V2MetricIdentifier target!:V2MetricTarget
V2ExternalMetricStatus current!:V2MetricValueStatus metric!:V2MetricIdentifier
V2HPAScalingPolicy periodSeconds!:i type!:s value!:i
V2HPAScalingRules policies:[V2HPAScalingPolicy selectPolicy:s stabilizationWindowSeconds:i tolerance:s
V2HorizontalPodAutoscaler metadata:ObjectMeta spec!:V2HorizontalPodAutoscalerSpec
  status:V2HorizontalPodAutoscalerStatus
V2HorizontalPodAutoscalerBehavior scaleDown:V2HPAScalingRules scaleUp:V2HPAScalingRules
V2HorizontalPodAutoscalerCondition lastTransitionTime:t message:s observedGeneration:i reason:s status!:s type!:s
V2HorizontalPodAutoscalerSpec behavior:V2HorizontalPodAutoscalerBehavior maxReplicas!:i metrics:[V2MetricSpec
  minReplicas:i scaleTargetRef!:V2CrossVersionObjectReference
V2HorizontalPodAutoscalerStatus conditions:[V2HorizontalPodAutoscalerCondition currentMetrics:[V2MetricStatus
  currentReplicas:i desiredReplicas!:i lastScaleTime:t observedGeneration:i
V2MetricIdentifier name!:s selector:LabelSelector
V2MetricSpec containerResource:V2ContainerResourceMetricSource external:V2ExternalMetricSource
  object:V2ObjectMetricSource pods:V2PodsMetricSource resource:V2ResourceMetricSource type!:s
V2MetricStatus containerResource:V2ContainerResourceMetricStatus external:V2ExternalMetricStatus
  object:V2ObjectMetricStatus pods:V2PodsMetricStatus resource:V2ResourceMetricStatus type!:s
V2MetricTarget averageUtilization:i averageValue:s type!:s value:s
V2MetricValueStatus averageUtilization:i averageValue:s value:s
V2ObjectMetricSource describedObject!:V2CrossVersionObjectReference metric!:V2MetricIdentifier target!:V2MetricTarget
V2ObjectMetricStatus current!:V2MetricValueStatus describedObject!:V2CrossVersionObjectReference
  metric!:V2MetricIdentifier
V2PodsMetricSource metric!:V2MetricIdentifier target!:V2MetricTarget
V2PodsMetricStatus current!:V2MetricValueStatus metric!:V2MetricIdentifier
V2ResourceMetricSource name!:s target!:V2MetricTarget
V2ResourceMetricStatus current!:V2MetricValueStatus name!:s
ValidatingWebhook admissionReviewVersions!:[s clientConfig!:AdmissionregistrationV1WebhookClientConfig failurePolicy:s
  matchConditions:[MatchCondition matchPolicy:s name!:s namespaceSelector:LabelSelector objectSelector:LabelSelector
  rules:[RuleWithOperations sideEffects!:s timeoutSeconds:i
ValidatingWebhookConfiguration metadata:ObjectMeta webhooks:[ValidatingWebhook
Volume awsElasticBlockStore:AWSElasticBlockStoreVolumeSource azureDisk:AzureDiskVolumeSource
  azureFile:AzureFileVolumeSource cephfs:CephFSVolumeSource cinder:CinderVolumeSource configMap:ConfigMapVolumeSource
  csi:CSIVolumeSource downwardAPI:DownwardAPIVolumeSource emptyDir:EmptyDirVolumeSource
  ephemeral:EphemeralVolumeSource fc:FCVolumeSource flexVolume:FlexVolumeSource flocker:FlockerVolumeSource
  gcePersistentDisk:GCEPersistentDiskVolumeSource gitRepo:GitRepoVolumeSource glusterfs:GlusterfsVolumeSource
  hostPath:HostPathVolumeSource image:ImageVolumeSource iscsi:ISCSIVolumeSource name!:s nfs:NFSVolumeSource
  persistentVolumeClaim:PersistentVolumeClaimVolumeSource photonPersistentDisk:PhotonPersistentDiskVolumeSource
  portworxVolume:PortworxVolumeSource projected:ProjectedVolumeSource quobyte:QuobyteVolumeSource rbd:RBDVolumeSource
  scaleIO:ScaleIOVolumeSource secret:SecretVolumeSource storageos:StorageOSVolumeSource
  vsphereVolume:VsphereVirtualDiskVolumeSource
VolumeAttachment metadata:ObjectMeta spec!:VolumeAttachmentSpec status:VolumeAttachmentStatus
VolumeAttachmentSource inlineVolumeSpec:PersistentVolumeSpec persistentVolumeName:s
VolumeAttachmentSpec attacher!:s nodeName!:s source!:VolumeAttachmentSource
VolumeAttachmentStatus attachError:VolumeError attached!:b attachmentMetadata:{s detachError:VolumeError
VolumeDevice devicePath!:s name!:s
VolumeError errorCode:i message:s time:t
VolumeHealthCondition message:s reason!:s status!:s
VolumeHealthStatus healthConditions:[VolumeHealthCondition lastTransitionTime:t
VolumeMount bindMountOptions:[s mountPath!:s mountPropagation:s name!:s readOnly:b recursiveReadOnly:s subPath:s
  subPathExpr:s
VolumeMountStatus mountPath!:s name!:s readOnly:b recursiveReadOnly:s volumeStatus:VolumeStatus
VolumeNodeAffinity required:NodeSelector
VolumeProjection clusterTrustBundle:ClusterTrustBundleProjection configMap:ConfigMapProjection
  downwardAPI:DownwardAPIProjection podCertificate:PodCertificateProjection secret:SecretProjection
  serviceAccountToken:ServiceAccountTokenProjection
VolumeResourceRequirements limits:{s requests:{s
VolumeStatus image:ImageVolumeStatus
VsphereVirtualDiskVolumeSource fsType:s storagePolicyID:s storagePolicyName:s volumePath!:s
WeightedPodAffinityTerm podAffinityTerm!:PodAffinityTerm weight!:i
WindowsSecurityContextOptions gmsaCredentialSpec:s gmsaCredentialSpecName:s hostProcess:b runAsUserName:s
alpha3TopologyConstraint key!:s
alpha3WorkloadPodGroupDisruptionMode all:o single:o
alpha3WorkloadPodGroupGangSchedulingPolicy minCount:i
alpha3WorkloadPodGroupResourceClaim name!:s resourceClaimName:s resourceClaimTemplateName:s
alpha3WorkloadPodGroupSchedulingConstraints topology:[alpha3TopologyConstraint
alpha3WorkloadPodGroupSchedulingPolicy basic:o gang:alpha3WorkloadPodGroupGangSchedulingPolicy
)";

// Whose type is not named like their kind.
struct OtherName {
  std::string_view kind, version, type;  // the type may be empty: it is not in the table
};
constexpr OtherName kOtherNames[] = {{"Event.events.k8s.io", "v1", "EventsV1Event"},
                                     {"HorizontalPodAutoscaler.autoscaling", "v2", "V2HorizontalPodAutoscaler"},
                                     {"HorizontalPodAutoscaler.autoscaling", "v1", ""}};

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
        type->fields.push_back({text.substr(0, colon - (required ? 1 : 0)), text.substr(colon + 1), required});
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

std::vector<std::string> UnknownFields(const ApiType& type, const json& body) {
  std::vector<std::string> unknown;
  Walk(type.name, body, "", &unknown);
  return unknown;
}

}  // namespace wavetank::fakekube::http
