// The tables of `istioctl proxy-config` (istioctl: pkg/writer/envoy/configdump, pkg/writer/envoy/clusters) and, with
// -o json and -o yaml, its documents.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/tables/envoy_dump.h"
#include "cli/tables/filters.h"
#include "core/base/time.h"

namespace wavetank::cli::tables {

// NotFound, in istioctl's words: the dump holds no clusters (listeners, routes).
absl::StatusOr<std::string> ClusterTable(const EnvoyDump& dump, const ClusterFilter& filter, Output output);
absl::StatusOr<std::string> ListenerTable(const EnvoyDump& dump, const ListenerFilter& filter, Output output);
absl::StatusOr<std::string> RouteTable(const EnvoyDump& dump, const RouteFilter& filter, Output output);
// Of /clusters?format=json; else of the ClusterLoadAssignments of a dump made with include_eds, whose hosts have failed
// no outlier check. NotFound: the document holds neither.
absl::StatusOr<std::string> EndpointTable(const EnvoyDump& dump, const EndpointFilter& filter, Output output);
// `now`: at which certificates are valid or not. NotFound: the dump has no section of secrets.
absl::StatusOr<std::string> SecretTable(const EnvoyDump& dump, Time now, Output output);
// NotFound, in istioctl's words: the dump has no section of extension configurations.
absl::StatusOr<std::string> ExtensionTable(const EnvoyDump& dump, Output output);
// Short: the versions of Istio and of Envoy. NotFound: the dump has no section of the bootstrap.
absl::StatusOr<std::string> BootstrapText(const EnvoyDump& dump, Output output);

// JSON with istioctl's indentation, or YAML, with the empty line that istioctl leaves behind it.
std::string Document(const nlohmann::ordered_json& value, Output output);
// The same of a list of resources, in which Go writes <, > and & as escapes (encoding/json: Marshal()).
std::string ListDocument(const nlohmann::ordered_json& list, Output output);
// "name.namespace" of the configuration that a resource's metadata name; "<unknown>" for one that is not of
// networking.istio.io.
std::string Management(const json& resource);

}  // namespace wavetank::cli::tables
