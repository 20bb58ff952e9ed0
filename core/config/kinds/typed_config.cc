#include "core/config/kinds/typed_config.h"

#include "core/config/kinds/read_message.h"

namespace wavetank::config {

std::string_view KindName(Kind kind) { return ResourceKindOf(kind).kind; }

const kube::ResourceKind& ResourceKindOf(Kind kind) {
  switch (kind) {
    case Kind::kAuthorizationPolicy:
      return kube::kinds::kAuthorizationPolicy;
    case Kind::kDestinationRule:
      return kube::kinds::kDestinationRule;
    case Kind::kEnvoyFilter:
      return kube::kinds::kEnvoyFilter;
    case Kind::kGateway:
      return kube::kinds::kGateway;
    case Kind::kPeerAuthentication:
      return kube::kinds::kPeerAuthentication;
    case Kind::kRequestAuthentication:
      return kube::kinds::kRequestAuthentication;
    case Kind::kServiceEntry:
      return kube::kinds::kServiceEntry;
    case Kind::kSidecar:
      return kube::kinds::kSidecar;
    case Kind::kTelemetry:
      return kube::kinds::kTelemetry;
    case Kind::kVirtualService:
      return kube::kinds::kVirtualService;
    case Kind::kWasmPlugin:
      return kube::kinds::kWasmPlugin;
    case Kind::kWorkloadEntry:
      break;
  }
  return kube::kinds::kWorkloadEntry;
}

void ReadMessage(ProtoJson& in, StringMatch& out) {
  const auto take = [&](std::string_view field, StringMatch::Kind kind) {
    if (!in.Has(field)) return;
    out.kind = kind;
    in.Field(field, out.value);
  };
  take("exact", StringMatch::Kind::kExact);
  take("prefix", StringMatch::Kind::kPrefix);
  take("regex", StringMatch::Kind::kRegex);
}

void ReadSelector(ProtoJson& in, std::string_view field, std::string_view labels, std::optional<Labels>& out) {
  const nlohmann::json* value = in.Find(field);
  if (value == nullptr) return;
  ProtoJson selector(*value, in.PathOf(field), in.status());
  selector.Field(labels, out.emplace());
}

void ReadMessage(ProtoJson& in, PolicyTarget& out) {
  in.Field("group", out.group);
  in.Field("kind", out.kind);
  in.Field("name", out.name);
  in.Field("namespace", out.ns);
}

void ReadTargets(ProtoJson& in, std::vector<PolicyTarget>& out) {
  in.Field("targetRefs", out);
  if (out.empty() && in.Has("targetRef")) in.Field("targetRef", out.emplace_back());
}

namespace {
struct PortSelector {
  uint32_t number = 0;
};
void ReadMessage(ProtoJson& in, PortSelector& out) { in.Field("number", out.number); }
}  // namespace

void ReadMessage(ProtoJson& in, Destination& out) {
  in.Field("host", out.host);
  in.Field("subset", out.subset);
  PortSelector port;
  in.Field("port", port);
  out.port = port.number;
}

void ReadMessage(ProtoJson& in, PortSpec& out) {
  in.Field("number", out.number);
  in.Field("protocol", out.protocol);
  in.Field("name", out.name);
  in.Field("targetPort", out.target_port);
}

void ReadMessage(ProtoJson& in, ServerTlsSettings::Certificate& out) {
  in.Field("serverCertificate", out.server_certificate);
  in.Field("privateKey", out.private_key);
}

void ReadMessage(ProtoJson& in, ServerTlsSettings& out) {
  using Mode = ServerTlsSettings::Mode;
  using Version = ServerTlsSettings::Version;
  in.Field("httpsRedirect", out.https_redirect);
  in.Enum("mode", out.mode,
          {{"PASSTHROUGH", Mode::kPassthrough},
           {"SIMPLE", Mode::kSimple},
           {"MUTUAL", Mode::kMutual},
           {"AUTO_PASSTHROUGH", Mode::kAutoPassthrough},
           {"ISTIO_MUTUAL", Mode::kIstioMutual},
           {"OPTIONAL_MUTUAL", Mode::kOptionalMutual}});
  in.Field("serverCertificate", out.server_certificate);
  in.Field("privateKey", out.private_key);
  in.Field("caCertificates", out.ca_certificates);
  in.Field("credentialName", out.credential_name);
  in.Field("credentialNames", out.credential_names);
  in.Field("tlsCertificates", out.tls_certificates);
  in.Field("caCertCredentialName", out.ca_cert_credential_name);
  in.Field("caCrl", out.ca_crl);
  in.Field("subjectAltNames", out.subject_alt_names);
  in.Field("verifyCertificateSpki", out.verify_certificate_spki);
  in.Field("verifyCertificateHash", out.verify_certificate_hash);
  in.Field("cipherSuites", out.cipher_suites);
  for (auto [field, version] : {std::pair("minProtocolVersion", &out.min_protocol_version),
                                std::pair("maxProtocolVersion", &out.max_protocol_version)}) {
    in.Enum(field, *version,
            {{"TLS_AUTO", Version::kAuto},
             {"TLSV1_0", Version::kTls10},
             {"TLSV1_1", Version::kTls11},
             {"TLSV1_2", Version::kTls12},
             {"TLSV1_3", Version::kTls13}});
  }
}

void ReadMessage(ProtoJson& in, WorkloadEntry& out) {
  in.Field("address", out.address);
  in.Field("ports", out.ports);
  in.Field("labels", out.labels);
  in.Field("network", out.network);
  in.Field("locality", out.locality);
  in.Field("weight", out.weight);
  in.Field("serviceAccount", out.service_account);
}

}  // namespace wavetank::config
