// What istiod's Deployment tells it: environment and arguments of container `discovery`, as pilot-discovery of
// the profile's release reads them (istiod: pilot/pkg/features/pilot.go, pilot/pkg/bootstrap/{options,istio_ca}.go,
// pilot/cmd/pilot-discovery/app/cmd.go).
//
// Every variable that pilot-discovery knows is a row: it acts here, or the simulation is so anyway, or it has no
// effect, which is said by name when a manifest sets another value than the default.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/istiod/istiod.h"

namespace wavetank::pilot {

enum class VariableType : uint8_t { kText, kFlag, kInteger, kNumber, kDuration };
enum class VariableEffect : uint8_t {
  kActs,
  kImplied,  // the simulation is so whatever it says
  kNone,
};

// One of them is set, by the variable's type; `text` always.
struct VariableValue {
  std::string text;
  bool flag = false;
  int64_t integer = 0;
  double number = 0;
  Duration duration{};
};

// What came of environment and arguments.
struct IstiodSettings {
  IstiodOptions options;                   // changed where something was said
  bool cluster_named = false;              // by CLUSTER_ID or --clusterID; else 1.18.2's default is "Kubernetes"
  bool external_said = false;              // EXTERNAL_ISTIOD is set
  bool resolves_gateways = true;           // RESOLVE_HOSTNAME_GATEWAYS
  bool patches_validation = true;          // VALIDATION_WEBHOOK_CONFIG_NAME names one
  bool injects = true;                     // INJECT_ENABLED
  std::optional<Duration> connection_age;  // --keepaliveMaxServerConnectionAge
  // Which scopes of the log print, and how (core/debug/log_scopes.h); empty: as by default.
  std::string log_output_level, log_stacktrace_level, log_caller;
  uint16_t ctrlz_port = 9876;    // 0: any free one
  std::vector<std::string> log;  // what istiod logs about what it could not read
};

struct IstiodVariable {
  std::string_view name;
  VariableType type;
  std::string_view default_value;
  VariableEffect effect;
  std::string_view meaning;  // here; empty without effect
  // The releases whose pilot-discovery knows it: from `since` (empty: the first), before `until` (empty: all later).
  std::string_view since, until;
  void (*apply)(const VariableValue& value, IstiodSettings* settings);

  bool KnownIn(std::string_view istio) const;  // "1.30.3"
};

// By name.
absl::Span<const IstiodVariable> IstiodVariables();
std::string_view VariableTypeName(VariableType type);

// What one container is told, references resolved.
struct ContainerSettings {
  std::map<std::string, std::string, std::less<>> variables;
  std::vector<std::string> arguments;
};

// What a ConfigMap or Secret of the pod's namespace holds; nullopt: it is not there.
using KeySource =
    std::function<std::optional<std::map<std::string, std::string>>(std::string_view kind, const std::string& name)>;

// Of the container named `container` of a pod, or of a pod's template: `envFrom`, which `env` overrides, and arguments.
// $(NAME) is expanded as the kubelet does. FailedPrecondition in the kubelet's words: what must be there is not.
// Without `keys` what refers to one is left out.
absl::StatusOr<ContainerSettings> ReadContainerSettings(const nlohmann::json& pod, std::string_view container,
                                                        const KeySource& keys);

// Variables that the release of the options' profile does not know do nothing. Unreadable values of others leave the
// default and a line in `log`. InvalidArgument: the process ends at once, in the words of its command line.
absl::Status Apply(const ContainerSettings& said, IstiodSettings* settings);

// What container `discovery` of a pod, or of a pod's template, says without effect here: "variable
// PILOT_ENABLE_REDIS_FILTER=true", "argument --profile". In order of name.
std::vector<std::string> UnheededSettings(const nlohmann::json& pod);

// The variables that istiod of a release ("1.30.3") passes over: it does not know them, or cannot read what they say
// (istiod: pkg/env/var.go).
std::vector<std::string> VariablesIstiodIgnores(const nlohmann::json& pod, std::string_view istio);
// Of these those that another release knows: "variable ENABLE_AUTO_SNI, which pilot-discovery 1.30.3 does not know".
std::vector<std::string> VariablesOfOtherReleases(const nlohmann::json& pod, std::string_view istio);

}  // namespace wavetank::pilot
