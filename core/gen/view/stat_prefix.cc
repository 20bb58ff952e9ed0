#include "core/gen/view/stat_prefix.h"

#include "core/profile/changes.h"

namespace wavetank::pilot {
namespace {

void ReplaceAll(std::string& text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
}

}  // namespace

std::string BuildStatPrefix(std::string_view pattern, std::string_view host, std::string_view subset, const Port& port,
                            const ServiceAttributes& attributes, const Profile& profile,
                            std::optional<uint32_t> target_port) {
  // Kubernetes Services are "name.namespace" for short; others have no short name.
  const bool of_kubernetes = attributes.registry == Provider::kKubernetes;
  const std::string service = of_kubernetes ? attributes.name + "." + attributes.ns : std::string(host);
  std::string out(pattern);
  ReplaceAll(out, "%SERVICE%", service);
  if (profile.Has(Change::kServiceNamesInStatNames)) {
    ReplaceAll(out, "%SERVICE_NAME%", of_kubernetes ? std::string_view(attributes.name) : host);
  }
  ReplaceAll(out, "%SERVICE_FQDN%", host);
  ReplaceAll(out, "%SUBSET_NAME%", subset);
  if (target_port && profile.Has(Change::kTargetPortsInStatNames)) {
    ReplaceAll(out, "%TARGET_PORT%", std::to_string(*target_port));
  }
  ReplaceAll(out, "%SERVICE_PORT%", std::to_string(port.port));
  ReplaceAll(out, "%SERVICE_PORT_NAME%", port.name);
  return out;
}

}  // namespace wavetank::pilot
