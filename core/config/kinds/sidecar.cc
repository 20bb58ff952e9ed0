#include "core/config/kinds/sidecar.h"

#include "core/config/kinds/read_message.h"

namespace wavetank::config {

namespace {
void ReadCaptureMode(ProtoJson& in, CaptureMode& out) {
  in.Enum("captureMode", out,
          {{"DEFAULT", CaptureMode::kDefault}, {"IPTABLES", CaptureMode::kIptables}, {"NONE", CaptureMode::kNone}});
}
}  // namespace

void ReadMessage(ProtoJson& in, SidecarIngressListener& out) {
  in.Field("port", out.port);
  in.Field("bind", out.bind);
  ReadCaptureMode(in, out.capture_mode);
  in.Field("defaultEndpoint", out.default_endpoint);
  in.Field("tls", out.tls);
  in.Field("connectionPool", out.connection_pool);
}

void ReadMessage(ProtoJson& in, SidecarEgressListener& out) {
  in.Field("port", out.port);
  in.Field("bind", out.bind);
  ReadCaptureMode(in, out.capture_mode);
  in.Field("hosts", out.hosts);
}

void ReadMessage(ProtoJson& in, OutboundTrafficPolicy& out) {
  using Mode = OutboundTrafficPolicy::Mode;
  in.Enum("mode", out.mode, {{"REGISTRY_ONLY", Mode::kRegistryOnly}, {"ALLOW_ANY", Mode::kAllowAny}});
  in.Field("egressProxy", out.egress_proxy);
}

void ReadMessage(ProtoJson& in, Sidecar& out) {
  ReadSelector(in, "workloadSelector", "labels", out.workload_selector);
  in.Field("ingress", out.ingress);
  in.Field("egress", out.egress);
  in.Field("outboundTrafficPolicy", out.outbound_traffic_policy);
  in.Field("inboundConnectionPool", out.inbound_connection_pool);
}

}  // namespace wavetank::config
