#include "scenarios/result.h"

namespace wavetank::scenario {

std::string_view StageName(Stage stage) {
  switch (stage) {
    case Stage::kKubernetes:
      return "Kubernetes";
    case Stage::kWatch:
      return "API server watch";
    case Stage::kQueue:
      return "istiod queue";
    case Stage::kDebounce:
      return "debounce";
    case Stage::kPushQueue:
      return "push queue";
    case Stage::kGeneration:
      return "generation";
    case Stage::kNetwork:
      return "network";
    case Stage::kApply:
      return "Envoy apply";
  }
  return "";
}

}  // namespace wavetank::scenario
