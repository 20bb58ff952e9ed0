#include "core/config/schema/istio_schemas.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;

// A type per line, its fields after it; what is indented goes on with the line above. Types: s text, i whole number, f
// number, b truth value, y bytes, o anything; =A/B one of these words, or =Name those of a line of its own; [T a list,
// {T a mapping from text, or another type of this table. `~`: it may be null. `@1`: of the fields with the same number
// at most one. The fields are those of istio.io/api at 1.18 (networking/v1alpha3, networking/v1beta1, security/v1beta1,
// telemetry/v1alpha1, extensions/v1alpha1, type/v1beta1).
constexpr std::string_view kIstioTypes = R"(
Abort httpStatus:i@1 grpcStatus:s@1 http2Error:s@1 percentage:Percent
AccessLogging match:LogSelector providers:[ProviderRef disabled:b~ filter:Filter
AuthorizationPolicy selector:WorkloadSelector rules:[Rule action:=ALLOW/DENY/AUDIT/CUSTOM provider:ExtensionProvider
ClaimToHeader header:s claim:s
ClientTLSSettings mode:=DISABLE/SIMPLE/MUTUAL/ISTIO_MUTUAL clientCertificate:s privateKey:s caCertificates:s
  credentialName:s subjectAltNames:[s sni:s insecureSkipVerify:b~
ClusterMatch portNumber:i service:s subset:s name:s
Condition key:s values:[s notValues:[s
ConnectionPoolSettings tcp:TCPSettings http:HTTPSettings
ConsistentHashLB httpHeaderName:s@1 httpCookie:HTTPCookie@1 useSourceIp:b@1 httpQueryParameterName:s@1
  ringHash:RingHash@2 maglev:MagLev@2 minimumRingSize:i
CorsPolicy allowOrigin:[s allowOrigins:[StringMatch allowMethods:[s allowHeaders:[s exposeHeaders:[s maxAge:s
  allowCredentials:b~
CustomTag literal:Literal@1 environment:Environment@1 header:RequestHeader@1
Delay percent:i fixedDelay:s@1 exponentialDelay:s@1 percentage:Percent
Delegate name:s namespace:s
Destination host:s subset:s port:PortSelector
DestinationRule host:s trafficPolicy:TrafficPolicy subsets:[Subset exportTo:[s workloadSelector:WorkloadSelector
Distribute from:s to:{i
Environment name:s defaultValue:s
EnvoyConfigObjectMatch context:=ANY/SIDECAR_INBOUND/SIDECAR_OUTBOUND/GATEWAY proxy:ProxyMatch
  listener:ListenerMatch@1 routeConfiguration:RouteConfigurationMatch@1 cluster:ClusterMatch@1
EnvoyConfigObjectPatch applyTo:=ApplyTo match:EnvoyConfigObjectMatch patch:Patch
EnvoyFilter workloadSelector:LabelsOf configPatches:[EnvoyConfigObjectPatch priority:i
EnvVar name:s valueFrom:=INLINE/HOST value:s
ExecHealthCheckConfig command:[s
ExtensionProvider name:s
Failover from:s to:s
Filter expression:s
FilterChainMatch name:s sni:s transportProtocol:s applicationProtocols:s filter:FilterMatch destinationPort:i
FilterMatch name:s subFilter:SubFilterMatch
From source:Source
Gateway servers:[Server selector:{s
HeaderOperations set:{s add:{s remove:[s
Headers request:HeaderOperations response:HeaderOperations
HTTPBody string:s@1 bytes:y@1
HTTPCookie name:s path:s ttl:s
HTTPDirectResponse status:i body:HTTPBody
HTTPFaultInjection delay:Delay abort:Abort
HTTPHeader name:s value:s
HTTPHealthCheckConfig path:s port:i host:s scheme:s httpHeaders:[HTTPHeader
HTTPMatchRequest name:s uri:StringMatch scheme:StringMatch method:StringMatch authority:StringMatch
  headers:{StringMatch port:i sourceLabels:{s gateways:[s queryParams:{StringMatch ignoreUriCase:b
  withoutHeaders:{StringMatch sourceNamespace:s statPrefix:s
HTTPRedirect uri:s authority:s port:i@1 derivePort:=FROM_PROTOCOL_DEFAULT/FROM_REQUEST_PORT@1 scheme:s
  redirectCode:i
HTTPRetry attempts:i perTryTimeout:s retryOn:s retryRemoteLocalities:b~
HTTPRewrite uri:s authority:s
HTTPRoute name:s match:[HTTPMatchRequest route:[HTTPRouteDestination redirect:HTTPRedirect
  directResponse:HTTPDirectResponse delegate:Delegate rewrite:HTTPRewrite timeout:s retries:HTTPRetry
  fault:HTTPFaultInjection mirror:Destination mirrorPercent:i~ mirrorPercentage:Percent corsPolicy:CorsPolicy
  headers:Headers mirror_percent:i~
HTTPRouteDestination destination:Destination weight:i headers:Headers
HTTPSettings http1MaxPendingRequests:i http2MaxRequests:i maxRequestsPerConnection:i maxRetries:i idleTimeout:s
  h2UpgradePolicy:=DEFAULT/DO_NOT_UPGRADE/UPGRADE useClientProtocol:b
IstioEgressListener port:Port bind:s captureMode:=DEFAULT/IPTABLES/NONE hosts:[s
IstioIngressListener port:Port bind:s captureMode:=DEFAULT/IPTABLES/NONE defaultEndpoint:s tls:ServerTLSSettings
JWTHeader name:s prefix:s
JWTRule issuer:s audiences:[s jwksUri:s jwks_uri:s jwks:s fromHeaders:[JWTHeader fromParams:[s outputPayloadToHeader:s
  forwardOriginalToken:b outputClaimToHeaders:[ClaimToHeader
L4MatchAttributes destinationSubnets:[s port:i sourceSubnet:s sourceLabels:{s gateways:[s sourceNamespace:s
LabelsOf labels:{s
ListenerMatch portNumber:i portName:s filterChain:FilterChainMatch listenerFilter:s name:s
Literal value:s
LoadBalancerSettings simple:=UNSPECIFIED/LEAST_CONN/RANDOM/PASSTHROUGH/ROUND_ROBIN/LEAST_REQUEST@1
  consistentHash:ConsistentHashLB@1 localityLbSetting:LocalityLoadBalancerSetting warmupDurationSecs:s
LocalityLoadBalancerSetting distribute:[Distribute failover:[Failover failoverPriority:[s enabled:b~
LogSelector mode:=CLIENT_AND_SERVER/CLIENT/SERVER
MagLev tableSize:i
Metrics providers:[ProviderRef overrides:[MetricsOverrides reportingInterval:s
MetricSelector metric:=IstioMetric@1 customMetric:s@1 mode:=CLIENT_AND_SERVER/CLIENT/SERVER
MetricsOverrides match:MetricSelector disabled:b~ tagOverrides:{TagOverride
MutualTLS mode:=UNSET/DISABLE/PERMISSIVE/STRICT
ObjectMeta labels:{s annotations:{s
Operation hosts:[s notHosts:[s ports:[s notPorts:[s methods:[s notMethods:[s paths:[s notPaths:[s
OutboundTrafficPolicy mode:=REGISTRY_ONLY/ALLOW_ANY egressProxy:Destination
OutlierDetection consecutiveErrors:i splitExternalLocalOriginErrors:b consecutiveLocalOriginFailures:i~
  consecutiveGatewayErrors:i~ consecutive5xxErrors:i~ interval:s baseEjectionTime:s maxEjectionPercent:i
  minHealthPercent:i
Patch operation:=PatchOperation value:o filterClass:=UNSPECIFIED/AUTHN/AUTHZ/STATS
PeerAuthentication selector:WorkloadSelector mtls:MutualTLS portLevelMtls:{MutualTLS
Percent value:f
Port number:i protocol:s name:s targetPort:i
PortSelector number:i
PortTrafficPolicy port:PortSelector loadBalancer:LoadBalancerSettings connectionPool:ConnectionPoolSettings
  outlierDetection:OutlierDetection tls:ClientTLSSettings
ProviderRef name:s
ProxyConfig selector:WorkloadSelector concurrency:i~ environmentVariables:{s image:ProxyImage
ProxyImage imageType:s
ProxyMatch proxyVersion:s metadata:{s
ReadinessProbe initialDelaySeconds:i timeoutSeconds:i periodSeconds:i successThreshold:i failureThreshold:i
  httpGet:HTTPHealthCheckConfig@1 tcpSocket:TCPHealthCheckConfig@1 exec:ExecHealthCheckConfig@1
RequestAuthentication selector:WorkloadSelector jwtRules:[JWTRule
RequestHeader name:s defaultValue:s
RingHash minimumRingSize:i
RouteConfigurationMatch portNumber:i portName:s gateway:s vhost:VirtualHostMatch name:s
RouteDestination destination:Destination weight:i
RouteMatch name:s action:=ANY/ROUTE/REDIRECT/DIRECT_RESPONSE
Rule from:[From to:[To when:[Condition
Server port:Port bind:s hosts:[s tls:ServerTLSSettings defaultEndpoint:s name:s
ServerTLSSettings httpsRedirect:b mode:=PASSTHROUGH/SIMPLE/MUTUAL/AUTO_PASSTHROUGH/ISTIO_MUTUAL serverCertificate:s
  privateKey:s caCertificates:s credentialName:s subjectAltNames:[s verifyCertificateSpki:[s
  verifyCertificateHash:[s minProtocolVersion:=TLSProtocol maxProtocolVersion:=TLSProtocol cipherSuites:[s
ServiceEntry hosts:[s addresses:[s ports:[ServicePort location:=MESH_EXTERNAL/MESH_INTERNAL
  resolution:=NONE/STATIC/DNS/DNS_ROUND_ROBIN endpoints:[WorkloadEntry workloadSelector:LabelsOf exportTo:[s
  subjectAltNames:[s
ServicePort number:i protocol:s name:s targetPort:i
Sidecar workloadSelector:LabelsOf ingress:[IstioIngressListener egress:[IstioEgressListener
  outboundTrafficPolicy:OutboundTrafficPolicy
Source principals:[s notPrincipals:[s requestPrincipals:[s notRequestPrincipals:[s namespaces:[s notNamespaces:[s
  ipBlocks:[s notIpBlocks:[s remoteIpBlocks:[s notRemoteIpBlocks:[s
StringMatch exact:s@1 prefix:s@1 regex:s@1
SubFilterMatch name:s
Subset name:s labels:{s trafficPolicy:TrafficPolicy
TagOverride operation:=UPSERT/REMOVE value:s
TCPHealthCheckConfig host:s port:i
TcpKeepalive probes:i time:s interval:s
TCPRoute match:[L4MatchAttributes route:[RouteDestination
TCPSettings maxConnections:i connectTimeout:s tcpKeepalive:TcpKeepalive maxConnectionDuration:s
Telemetry selector:WorkloadSelector tracing:[Tracing metrics:[Metrics accessLogging:[AccessLogging
TLSMatchAttributes sniHosts:[s destinationSubnets:[s port:i sourceLabels:{s gateways:[s sourceNamespace:s
TLSRoute match:[TLSMatchAttributes route:[RouteDestination
To operation:Operation
Tracing match:TracingSelector providers:[ProviderRef randomSamplingPercentage:f~ disableSpanReporting:b~
  customTags:{CustomTag useRequestIdForTraceSampling:b~
TracingSelector mode:=CLIENT_AND_SERVER/CLIENT/SERVER
TrafficPolicy loadBalancer:LoadBalancerSettings connectionPool:ConnectionPoolSettings
  outlierDetection:OutlierDetection tls:ClientTLSSettings portLevelSettings:[PortTrafficPolicy tunnel:TunnelSettings
TrafficSelector mode:=UNDEFINED/CLIENT/SERVER/CLIENT_AND_SERVER ports:[PortSelector
TunnelSettings protocol:s targetHost:s targetPort:i
VirtualHostMatch name:s route:RouteMatch
VirtualService hosts:[s gateways:[s http:[HTTPRoute tls:[TLSRoute tcp:[TCPRoute exportTo:[s
VmConfig env:[EnvVar
WasmPlugin selector:WorkloadSelector url:s sha256:s imagePullPolicy:=UNSPECIFIED_POLICY/IfNotPresent/Always
  imagePullSecret:s verificationKey:s pluginConfig:o pluginName:s phase:=UNSPECIFIED_PHASE/AUTHN/AUTHZ/STATS
  priority:i~ vmConfig:VmConfig match:[TrafficSelector
WorkloadEntry address:s ports:{i labels:{s network:s locality:s weight:i serviceAccount:s
WorkloadGroup metadata:ObjectMeta template:WorkloadEntry probe:ReadinessProbe
WorkloadSelector matchLabels:{s
=ApplyTo INVALID LISTENER FILTER_CHAIN NETWORK_FILTER HTTP_FILTER ROUTE_CONFIGURATION VIRTUAL_HOST HTTP_ROUTE
  CLUSTER EXTENSION_CONFIG BOOTSTRAP LISTENER_FILTER
=IstioMetric ALL_METRICS REQUEST_COUNT REQUEST_DURATION REQUEST_SIZE RESPONSE_SIZE TCP_OPENED_CONNECTIONS
  TCP_CLOSED_CONNECTIONS TCP_SENT_BYTES TCP_RECEIVED_BYTES GRPC_REQUEST_MESSAGES GRPC_RESPONSE_MESSAGES
=PatchOperation INVALID MERGE ADD REMOVE INSERT_BEFORE INSERT_AFTER INSERT_FIRST REPLACE
=TLSProtocol TLS_AUTO TLSV1_0 TLSV1_1 TLSV1_2 TLSV1_3
)";

// What Istio 1.30 has beyond: types, and of those above further fields; a field that is there already has these words
// instead.
constexpr std::string_view kLaterIstioTypes = R"(
ClientTLSSettings caCrl:s
CookieAttribute name:s value:s
CorsPolicy unmatchedPreflights:=UNSPECIFIED/FORWARD/IGNORE
EnvoyConfigObjectMatch waypoint:WaypointMatch
EnvoyFilter targetRefs:[PolicyTargetReference
AuthorizationPolicy targetRef:PolicyTargetReference targetRefs:[PolicyTargetReference
HTTPCookie attributes:[CookieAttribute
HTTPMirrorPolicy destination:Destination percentage:Percent
HTTPRetry retryIgnorePreviousHosts:b~ backoff:s
HTTPRewrite uriRegexRewrite:RegexRewrite
HTTPRoute mirrors:[HTTPMirrorPolicy
HTTPSettings maxConcurrentStreams:i
IstioIngressListener connectionPool:ConnectionPoolSettings
JWTRule fromCookies:[s timeout:s spaceDelimitedClaims:[s
LoadBalancerSettings warmup:WarmupConfiguration
PolicyTargetReference group:s kind:s name:s namespace:s
ProxyProtocol version:=V1/V2
RegexRewrite match:s rewrite:s
RequestAuthentication targetRef:PolicyTargetReference targetRefs:[PolicyTargetReference
RetryBudget percent:f~ minRetryConcurrency:i
ServerTLSSettings mode:=PASSTHROUGH/SIMPLE/MUTUAL/AUTO_PASSTHROUGH/ISTIO_MUTUAL/OPTIONAL_MUTUAL credentialNames:[s
  tlsCertificates:[TLSCertificate caCertCredentialName:s caCrl:s
ServiceEntry resolution:=NONE/STATIC/DNS/DNS_ROUND_ROBIN/DYNAMIC_DNS
Sidecar inboundConnectionPool:ConnectionPoolSettings
Source serviceAccounts:[s notServiceAccounts:[s trustDomains:[s notTrustDomains:[s
TCPSettings idleTimeout:s
Telemetry targetRef:PolicyTargetReference targetRefs:[PolicyTargetReference
TLSCertificate serverCertificate:s privateKey:s caCertificates:s
TrafficPolicy proxyProtocol:ProxyProtocol retryBudget:RetryBudget
WarmupConfiguration duration:s minimumPercent:f~ aggression:f~
WasmPlugin targetRef:PolicyTargetReference targetRefs:[PolicyTargetReference
VirtualHostMatch domainName:s
WaypointMatch filter:o route:o portNumber:i
)";

// What `kubectl explain` tells of types and fields, in words of this house.
constexpr std::string_view kIstioDescriptions = R"(
AccessLogging Which requests are logged, and by whom.
AuthorizationPolicy Who may send what to the workloads that it selects.
AuthorizationPolicy.action ALLOW, DENY, AUDIT, or CUSTOM: a provider decides. ALLOW if nothing is said.
AuthorizationPolicy.provider Who decides, with the action CUSTOM.
AuthorizationPolicy.rules The requests that it is about; one rule that fits is enough. None: no request.
AuthorizationPolicy.selector The workloads of this namespace that it is for; all if nothing is said.
ClientTLSSettings How connections to the destination are secured.
ClientTLSSettings.credentialName A Secret with certificate and key, for gateways.
ClientTLSSettings.mode DISABLE, SIMPLE, MUTUAL, or ISTIO_MUTUAL with the mesh's own certificates.
ClientTLSSettings.sni The server's name that the handshake asks for.
ClientTLSSettings.subjectAltNames Names of which the server's certificate must have one.
ConnectionPoolSettings How many connections and requests a client may have at once.
Destination Where requests go: a host of the mesh, and maybe a subset of its endpoints.
Destination.host A service's name; a short one means the rule's own namespace.
Destination.port Which of its ports, needed where it has several.
Destination.subset A subset that a DestinationRule names.
DestinationRule What clients do with traffic once it is routed to a host.
DestinationRule.exportTo The namespaces that see it: "." its own, "*" all.
DestinationRule.host The service that it is about; a short name means the rule's own namespace.
DestinationRule.subsets Parts of the service's endpoints by label, that routes can name.
DestinationRule.trafficPolicy Load balancing, connection pools, outlier detection and TLS.
DestinationRule.workloadSelector The clients of this namespace that follow it; all if nothing is said.
Distribute.from Where the client is: region/zone/subzone, "*" at the end for any.
Distribute.to Where its traffic goes, in percent.
EnvoyFilter Changes of the configuration that istiod generates: listeners, filters, routes, clusters.
Failover.from A region.
Failover.to The region that takes over when the endpoints in the first are unhealthy.
Gateway A load balancer at the mesh's edge: ports, hosts, TLS. Routes come from VirtualServices.
Gateway.selector Labels of the gateway pods that it configures.
Gateway.servers What is listened for.
HTTPFaultInjection Failures on purpose, for tests.
HTTPMatchRequest Which requests; all conditions of one match must hold.
HTTPMatchRequest.gateways The gateways where this holds; "mesh": all sidecars.
HTTPRetry When and how often a failed request is tried again.
HTTPRetry.attempts At most so many times.
HTTPRetry.retryOn On which failures, in Envoy's words.
HTTPRoute A rule for requests over HTTP and gRPC; the first that matches counts.
HTTPRoute.delegate Another VirtualService that has this route's rules.
HTTPRoute.directResponse An answer that the proxy gives itself.
HTTPRoute.fault Failures on purpose, for tests.
HTTPRoute.match Which requests; one of them is enough, none means all.
HTTPRoute.mirror Where copies of the requests go, too.
HTTPRoute.name For logs.
HTTPRoute.redirect The client is sent elsewhere.
HTTPRoute.retries When and how often a failed request is tried again.
HTTPRoute.rewrite Path or authority that the destination sees instead.
HTTPRoute.route Where they go; weights split them.
HTTPRoute.timeout How long an answer may take.
HTTPRouteDestination.weight Its share, of the sum of all.
LoadBalancerSettings How an endpoint is chosen.
LoadBalancerSettings.consistentHash The same client, by header, cookie, address or parameter, gets the same endpoint.
LoadBalancerSettings.localityLbSetting Which localities are preferred.
LoadBalancerSettings.simple LEAST_REQUEST if nothing is said.
LocalityLoadBalancerSetting.distribute How traffic of a locality is spread over localities.
LocalityLoadBalancerSetting.failover Which region takes over for which.
LocalityLoadBalancerSetting.failoverPriority Labels; endpoints that share more of them, from the first on, come first.
MutualTLS.mode STRICT: only mTLS; PERMISSIVE: plain text, too; DISABLE; UNSET: as the parent says.
OutlierDetection When an endpoint that fails is left out for a while.
OutlierDetection.baseEjectionTime For how long, at first.
OutlierDetection.consecutive5xxErrors After so many errors in a row; 0 switches it off.
OutlierDetection.interval How often is looked.
OutlierDetection.maxEjectionPercent At most so many of the endpoints.
PeerAuthentication Which connections the selected workloads take: mTLS, plain text, or both.
PeerAuthentication.mtls For all ports.
PeerAuthentication.portLevelMtls For single ports of the workload, by number.
PeerAuthentication.selector The workloads of this namespace that it is for; all if nothing is said.
Port.name Its name.
Port.number Its number.
Port.protocol HTTP, HTTPS, GRPC, HTTP2, MONGO, TCP or TLS.
ProxyConfig Settings of proxies, by namespace or workload.
RequestAuthentication Which tokens (JWT) are checked. That there must be one, an AuthorizationPolicy says.
Rule.from Who sends; one of them is enough.
Rule.to What is sent; one of them is enough.
Rule.when Further conditions, that all must hold.
Server.hosts The hosts that are served here, with "namespace/" before them if only its routes count.
Server.tls How connections are secured, and what is done with their SNI.
ServerTLSSettings.mode AUTO_PASSTHROUGH routes by an SNI that names the service, as between networks.
ServiceEntry A service that the mesh's registry does not have: outside of it, or on machines of its own.
ServiceEntry.addresses Its virtual addresses.
ServiceEntry.endpoints Its endpoints.
ServiceEntry.exportTo The namespaces that see it: "." its own, "*" all.
ServiceEntry.hosts Its names.
ServiceEntry.location MESH_INTERNAL endpoints take mTLS, MESH_EXTERNAL ones do not.
ServiceEntry.ports Its ports.
ServiceEntry.resolution How addresses are found: NONE, STATIC, DNS, DNS_ROUND_ROBIN or DYNAMIC_DNS.
ServiceEntry.workloadSelector Pods and WorkloadEntries of this namespace that are its endpoints.
Sidecar What the proxies of a namespace, or of some workloads, listen for and know.
Sidecar.egress What they know: the hosts that they can reach.
Sidecar.ingress What they take, if not all that the pod's Services say.
Subset.labels Labels that its endpoints have.
Subset.name Its name, for routes.
Subset.trafficPolicy Instead of the host's.
Telemetry Traces, metrics and access logs of workloads.
TrafficPolicy.portLevelSettings For single ports, instead.
TrafficPolicy.tls How connections to the destination are secured.
VirtualService Where traffic for a host goes.
VirtualService.exportTo The namespaces that see it: "." its own, "*" all.
VirtualService.gateways Where it holds: gateways by name, "mesh" for all sidecars, which is meant if nothing is said.
VirtualService.hosts The hosts that requests are for.
VirtualService.http Rules for HTTP and gRPC, in order.
VirtualService.tcp Rules for plain TCP, in order.
VirtualService.tls Rules for TLS that is passed through, by SNI, in order.
WasmPlugin A module that extends proxies, as an HTTP filter.
WorkloadEntry A workload outside of Kubernetes, as an endpoint.
WorkloadEntry.address Its address; without a port.
WorkloadEntry.labels Its labels, for selectors and subsets.
WorkloadEntry.locality region/zone/subzone.
WorkloadEntry.network The network that it is in: others reach it through that network's gateway.
WorkloadEntry.ports Its ports by the service port's name.
WorkloadEntry.serviceAccount The account that it runs as.
WorkloadEntry.weight Its share among the endpoints.
WorkloadGroup A template for WorkloadEntries that register themselves.
)";

struct IstioTable {
  std::map<std::string, std::vector<std::string>, std::less<>> types;  // and named words, by "=Name"
  std::map<std::string, std::string, std::less<>> descriptions;        // by type, or "type.field"
};

void AddTypes(std::string_view text, IstioTable& table) {
  std::vector<std::string>* fields = nullptr;
  for (absl::string_view line : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n', absl::SkipEmpty())) {
    const bool continued = line[0] == ' ';
    std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (!continued) fields = &table.types[words.front()];
    for (size_t i = continued ? 0 : 1; i < words.size(); ++i) {
      const size_t colon = words[i].find(':');
      const auto same = std::find_if(fields->begin(), fields->end(), [&](const std::string& field) {
        return colon != std::string::npos && field.compare(0, colon + 1, words[i], 0, colon + 1) == 0;
      });
      if (same == fields->end()) {
        fields->push_back(std::move(words[i]));
      } else {
        *same = std::move(words[i]);
      }
    }
  }
}

const IstioTable& Table(bool later) {
  static const auto* const kTables = [] {
    auto* tables = new std::array<IstioTable, 2>;
    for (IstioTable& table : *tables) {
      AddTypes(kIstioTypes, table);
      for (absl::string_view line : absl::StrSplit(
               absl::string_view(kIstioDescriptions.data(), kIstioDescriptions.size()), '\n', absl::SkipEmpty())) {
        const std::pair<std::string, std::string> entry = absl::StrSplit(line, absl::MaxSplits(' ', 1));
        table.descriptions.insert(entry);
      }
    }
    AddTypes(kLaterIstioTypes, (*tables)[1]);
    return tables;
  }();
  return (*kTables)[later ? 1 : 0];
}

json SchemaOf(const IstioTable& table, std::string_view type);

json ObjectSchema(const IstioTable& table, std::string_view type) {
  const auto found = table.types.find(type);
  json out = {{"type", "object"}};
  if (found == table.types.end()) {
    out["x-kubernetes-preserve-unknown-fields"] = true;
    return out;
  }
  json properties = json::object();
  std::map<char, json> exclusive;  // of each group: what requires each of its fields
  for (const std::string& field : found->second) {
    const size_t colon = field.find(':'), group = field.find('@');
    const std::string name = field.substr(0, colon);
    json schema = SchemaOf(
        table, std::string_view(field).substr(colon + 1, group == std::string::npos ? group : group - colon - 1));
    const auto text = table.descriptions.find(std::string(type) + "." + name);
    if (text != table.descriptions.end()) schema["description"] = text->second;
    if (group != std::string::npos) exclusive[field[group + 1]].push_back({{"required", json::array({name})}});
    properties[name] = std::move(schema);
  }
  out["properties"] = std::move(properties);
  json all = json::array();
  for (auto& [group, each] : exclusive) {
    json one = json::array({{{"not", {{"anyOf", each}}}}});
    for (json& field : each) one.push_back(std::move(field));
    all.push_back({{"oneOf", std::move(one)}});
  }
  if (all.size() == 1) out.update(all.front());
  if (all.size() > 1) out["allOf"] = std::move(all);
  return out;
}

json SchemaOf(const IstioTable& table, std::string_view type) {
  json out;
  if (type.ends_with('~')) {
    out = SchemaOf(table, type.substr(0, type.size() - 1));
    out["nullable"] = true;
    return out;
  }
  switch (type.front()) {
    case '[':
      return {{"type", "array"}, {"items", SchemaOf(table, type.substr(1))}};
    case '{':
      return {{"type", "object"}, {"additionalProperties", SchemaOf(table, type.substr(1))}};
    case 's':
      return {{"type", "string"}};
    case 'i':
      return {{"type", "integer"}};
    case 'f':
      return {{"type", "number"}, {"format", "double"}};
    case 'b':
      return {{"type", "boolean"}};
    case 'y':
      return {{"type", "string"}, {"format", "binary"}};
    case 'o':
      return {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
    case '=': {
      const auto named = table.types.find(type);
      std::vector<std::string> words;
      if (named != table.types.end()) {
        words = named->second;
      } else {
        words = absl::StrSplit(absl::string_view(type.data() + 1, type.size() - 1), '/');
      }
      return {{"type", "string"}, {"enum", words}};
    }
    default:
      out = ObjectSchema(table, type);
      if (const auto text = table.descriptions.find(type); text != table.descriptions.end())
        out["description"] = text->second;
      return out;
  }
}

}  // namespace

json IstioSchema(std::string_view kind, bool later) {
  const IstioTable& table = Table(later);
  json out = {{"type", "object"}};
  json spec = SchemaOf(table, kind);
  if (!spec.contains("properties")) {
    out["x-kubernetes-preserve-unknown-fields"] = true;
    return out;
  }
  if (spec.contains("description")) {
    out["description"] = spec["description"];
    spec["description"] = "What is wanted.";
  }
  out["properties"] = {{"spec", std::move(spec)}, {"status", SchemaOf(table, "o")}};
  return out;
}

}  // namespace wavetank::pilot
