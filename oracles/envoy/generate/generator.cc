#include "oracles/envoy/generate/generator.h"

#include "fmt/format.h"
#include "oracles/envoy/generate/kinds.h"

namespace wavetank::envoydiff {
namespace {

struct GeneratedKind {
  const char* name;
  int weight;
  nlohmann::json (*make)(Draw& draw);
};
constexpr GeneratedKind kGeneratedKinds[] = {
    {"heads", 17, HeadsCase},          {"failing", 15, FailingCase},      {"balancing", 11, BalancingCase},
    {"filtering", 15, FilteringCase},  {"connecting", 7, ConnectingCase}, {"compressing", 4, CompressingCase},
    {"limiting", 4, LimitingCase},     {"speaking", 4, SpeakingCase},     {"calling", 3, CallingCase},
    {"announcing", 3, AnnouncingCase}, {"pacing", 8, PacingCase},         {"weighing", 4, WeighingCase},
    {"upgrading", 5, UpgradingCase},
};

}  // namespace

nlohmann::json GenerateCase(uint64_t seed) {
  Draw draw(seed, "envoy-diff");
  int point = draw.Int(0, 99);
  const GeneratedKind* kind = kGeneratedKinds;
  while (point >= kind->weight) point -= kind++->weight;
  nlohmann::json out = kind->make(draw);
  out["name"] = fmt::format("generated {} ({})", seed, kind->name);
  if (draw.Maybe(50)) out["protocol"] = "delta";
  return out;
}

std::string BackendName(int index) { return std::string(1, static_cast<char>('a' + index)); }
std::string BackendAddress(int index) { return fmt::format("127.77.0.{}:9000", 11 + index); }

nlohmann::json Backends(int count) {
  nlohmann::json out = nlohmann::json::object();
  for (int i = 0; i < count; ++i) out[BackendName(i)] = BackendAddress(i);
  return out;
}

}  // namespace wavetank::envoydiff
