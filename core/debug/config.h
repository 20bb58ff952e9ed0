// What istiod was told: Istio's objects, mesh config, injection templates (istiod: pilot/pkg/xds/debug.go).
#pragma once

#include "nlohmann/json.hpp"

namespace wavetank::pilot {
class Connection;
class Istiod;
}  // namespace wavetank::pilot

namespace wavetank::debug {

// Every object that istiod reads, as Kubernetes shows it, by kind.
nlohmann::ordered_json Configz(const pilot::Istiod& istiod);
// The kinds that it reads.
nlohmann::ordered_json Resourcesz();
// The mesh config in force: what was given over istiod's defaults.
nlohmann::ordered_json Mesh(const pilot::Istiod& istiod);
nlohmann::ordered_json Authorizationz(const pilot::Istiod& istiod);
nlohmann::ordered_json Telemetryz(const pilot::Istiod& istiod);
// What holds for one proxy.
nlohmann::ordered_json TelemetryzOf(const pilot::Istiod& istiod, const pilot::Connection& connection);
// AuthorizationPolicies and gateways of the push context in force.
nlohmann::ordered_json PushContextz(const pilot::Istiod& istiod);
// Injection templates by name, as the ConfigMap holds them; without one, of a default installation's none is known as
// a text.
nlohmann::ordered_json Inject(const pilot::Istiod& istiod);

}  // namespace wavetank::debug
