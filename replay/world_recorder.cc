#include "replay/world_recorder.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "core/kube/credentials/sealing.h"
#include "fakes/kube/http/rest/rest.h"
#include "replay/kept_secrets.h"
#include "replay/secrets.h"
#include "replay/world_target.h"
#include "sim/inputs/kinds/kube_request.h"

namespace wavetank::replay {

using nlohmann::json;

absl::StatusOr<std::unique_ptr<Recorder>> RecordWorld(sim::World& world, const WorldRecording& recording) {
  LogHeader header;
  DescribeWorld(world, &header);
  header.program_version = recording.program_version;
  header.scenario_name = recording.scenario_name;
  // Manifests of folders have no file of their own.
  std::error_code error;
  if (std::filesystem::is_regular_file(recording.scenario_file, error)) {
    std::ifstream file(recording.scenario_file);
    header.scenario_text.assign(std::istreambuf_iterator<char>(file), {});
  }
  const bool keep = recording.keep_secrets;
  if (!keep) header.scenario_text = kube::SealedText(header.scenario_text);
  if (keep) header.world[std::string(kKeepsSecretsKey)] = true;
  if (recording.real_istiod) header.world[std::string(kRealIstiodKey)] = true;
  if (!recording.invariants.empty()) header.world[std::string(kInvariantsKey)] = recording.invariants;
  absl::StatusOr<std::unique_ptr<LogWriter>> writer =
      LogWriter::Create(recording.log, header, {.keep_secrets = keep, .durable_commits = recording.durable_commits});
  if (!writer.ok()) return writer.status();
  const bool real = recording.real_istiod;
  auto recorder = std::make_unique<Recorder>(world.kernel(), *std::move(writer), nullptr,
                                             real ? Recorder::What::kInputs : Recorder::What::kInputsAndTrace);
  recorder->Keep(
      world.on_input.Add([&world, real, keep, to = recorder.get()](uint64_t number, Time, const sim::Input& input) {
        if (real && input.of_real_istiod) return;
        const auto* of_client = input.As<sim::inputs::KubeRequest>();
        json body = input.Print();
        if (real && of_client != nullptr) {
          if (const auto* api = world.KubeApi(of_client->cluster); api != nullptr) {
            fakekube::http::Request request;
            request.method = of_client->method;
            request.path = of_client->path;
            request.content_type = of_client->content_type;
            body["body"] = api->WithoutPreconditions(request, body["body"]);
          }
        }
        if (keep) {
          to->Input(number, std::string(input.kind()), std::move(body)).IgnoreError();
          return;
        }
        // What clients write must replay as far as it can; a token's text decides nothing. The writer keeps its first
        // error, and Finish() returns it.
        body = of_client != nullptr ? RedactedWithin(std::move(body)) : Redacted(std::move(body));
        to->Input(number, std::string(input.kind()), kube::Sealed(std::move(body))).IgnoreError();
      }));
  return recorder;
}

}  // namespace wavetank::replay
