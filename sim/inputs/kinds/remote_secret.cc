#include "sim/inputs/kinds/remote_secret.h"

#include "absl/strings/escaping.h"
#include "core/security/remote_secret.h"
#include "fmt/format.h"
#include "sim/inputs/fields.h"
#include "sim/mending/installation.h"
#include "sim/world_inputs.h"

namespace wavetank::sim::inputs {

void SetRemoteSecret::Fields(FieldVisitor& visitor) {
  visitor.Visit("of", Need::kRequired, of);
  visitor.Visit("in", Need::kRequired, in);
  visitor.Visit("state", Need::kLenient, state);
  visitor.Visit("secret", Need::kSparse, secret);
}

absl::Status SetRemoteSecret::Apply(InputTarget& target) const {
  absl::StatusOr<World::Site*> read = target.FindSite(of), reader = target.FindSite(in);
  if (!read.ok()) return read.status();
  if (!reader.ok()) return reader.status();
  fakekube::ApiServer& api = (*reader)->cluster().api();
  const std::string named = secret.empty() ? "istio-remote-secret-" + of : secret;
  const std::string ns = SystemNamespaceOf(api);
  if (state == "deleted") return api.Delete("Secret", {ns, named});
  if (state != "present" && state != "restored" && state != "rotated" && state != "broken") {
    return absl::InvalidArgumentError(fmt::format("a remote Secret cannot be '{}'", state));
  }
  int& generation = target.secret_generations[{of, in}];
  if (state == "rotated") ++generation;
  kube::TokenClaims claims;
  claims.ns = SystemNamespaceOf((*read)->cluster().api());
  claims.service_account = security::kReaderServiceAccount;
  claims.issued = claims.expires = Time{} + std::chrono::seconds(generation);
  security::RemoteSecretFields fields;
  fields.system_namespace = ns;
  fields.cluster = of;
  fields.server = ApiServerUrl(of);
  fields.ca_pem = (*read)->ca_pem();
  fields.token = (*read)->tokens().Issue(claims);
  fields.name = secret;
  nlohmann::json made = security::MakeRemoteSecret(fields)->body;
  if (state == "broken") made["data"][of] = absl::Base64Escape("this is no kubeconfig");
  return api.Apply(std::move(made)).status();
}

}  // namespace wavetank::sim::inputs

namespace wavetank::sim {
void RegisterRemoteSecret(InputTable& table) { table.Add<inputs::SetRemoteSecret>(); }
}  // namespace wavetank::sim
