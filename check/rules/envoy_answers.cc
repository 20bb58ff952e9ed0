// What the mesh says to what it is given: istiod's webhook to objects, its Envoys to what istiod sends them.
#include "check/rules/rule.h"
#include "fmt/format.h"
#include "scenarios/answers/pod_names.h"
#include "scenarios/results/nacks.h"

namespace wavetank::check {
namespace {

std::string ClusterOf(const std::string& proxy) { return scenario::PodNameOf(proxy).cluster; }

void Refused(const Mesh& mesh, Findings& findings) {
  for (const scenario::Nack& nack : scenario::NackTally(mesh.world()).All()) {
    findings.Add(ClusterOf(nack.proxy), {}, {}, fmt::format("{} refused {}: {}", nack.proxy, nack.type, nack.text));
  }
}

void NotSimulated(const Mesh& mesh, Findings& findings) {
  for (const scenario::WithoutEffect& without : scenario::WithoutEffectOf(mesh.world())) {
    findings.Add({}, {}, {}, Describe(without));
  }
}

void RefusedByIstiod(const Mesh& mesh, Findings& findings) {
  for (const RefusedObject& refused : mesh.refused()) {
    findings.Add(refused.cluster, NameOf(*refused.object), mesh.Where(refused.cluster, *refused.object), refused.words);
  }
}

}  // namespace

const std::vector<Rule>& EnvoyAnswerRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT532", "ConfigurationRefused", Level::kError,
       "an Envoy goes on with what it had, and one that starts never gets ready",
       "mend the EnvoyFilter or object that the words name; `wavetank xds` shows what was sent", "", Refused},
      {"WT533", "NotSimulated", Level::kInfo, "a real Envoy would do something that no simulated one does",
       "try that part beside a real Envoy: `wavetank serve` (docs/serve.md)", "", NotSimulated},
      {"WT534", "RefusedByIstiod", Level::kError, "the object is not stored, and what was there before stays in force",
       "mend the field that the words name", "", RefusedByIstiod},
  };
  return *rules;
}

}  // namespace wavetank::check
