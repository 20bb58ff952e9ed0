#include "serve/agent/bootstrap_dial.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "core/base/duration.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/envoyapi/json_printer.h"
#include "core/envoyapi/json_reader.h"
#include "core/istiod/bootstrap_answer.h"
#include "envoy/service/discovery/v3/ads.grpc.pb.h"

namespace wavetank::serve {
namespace {

namespace discovery = envoy::service::discovery::v3;

// One stream for one answer. Unavailable and the like: it came to nothing.
absl::StatusOr<std::string> AskOnce(const DialOptions& istiod, const discovery::DiscoveryRequest& request) {
  const absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = Dial(istiod);
  if (!channel.ok()) return channel.status();
  grpc::ClientContext context;
  // Nobody waits for a stream on which nothing happens.
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  AddCallMetadata(istiod, context);
  const auto stub = discovery::AggregatedDiscoveryService::NewStub(*channel);
  const auto stream = stub->StreamAggregatedResources(&context);
  discovery::DiscoveryResponse response;
  const bool answered = stream->Write(request) && stream->Read(&response);
  context.TryCancel();
  const grpc::Status status = stream->Finish();
  if (!answered) {
    return absl::Status(
        status.ok() ? absl::StatusCode::kUnavailable : static_cast<absl::StatusCode>(status.error_code()),
        status.ok() ? "the stream ended" : status.error_message());
  }
  if (response.resources_size() != 1 || response.resources(0).type_url() != pilot::kBootstrapTypeUrl)
    return absl::UnavailableError("the answer holds no bootstrap");
  return response.resources(0).value();
}

}  // namespace

absl::StatusOr<std::string> AskForBootstrap(const DialOptions& istiod, const nlohmann::ordered_json& node,
                                            const agent::Log& log, const std::function<bool(Duration)>& pause) {
  discovery::DiscoveryRequest request;
  request.set_type_url(std::string(pilot::kBootstrapTypeUrl));
  if (absl::Status status = pilot::ReadEnvoyJson(nlohmann::json(node), *request.mutable_node()); !status.ok())
    return status;
  std::mt19937_64 random(std::random_device{}());
  for (Duration next = 500ms;; next = std::min<Duration>(next * 3 / 2, 60s)) {
    const absl::StatusOr<std::string> bytes = AskOnce(istiod, request);
    if (bytes.ok()) {
      std::vector<nlohmann::ordered_json> printed =
          pilot::EnvoyJson(pilot::kBootstrapTypeUrl, {*bytes}, pilot::FieldNames::kOriginal);
      if (printed.empty() || printed.front().contains("value"))
        return absl::InvalidArgumentError("istiod's bootstrap cannot be read");
      printed.front().erase("@type");
      Say(log, agent::Level::kInfo, "", "successfully updated bootstrap config");
      return JsonText(printed.front(), 1);
    }
    Say(log, agent::Level::kWarn, "", std::string(Message(bytes.status())));
    // Half of it to one and a half times as much.
    const Duration wait = next / 2 + Duration(static_cast<int64_t>(random() % static_cast<uint64_t>(next.count())));
    if (!pause(wait)) return absl::CancelledError("the agent was told to end");
    Say(log, agent::Level::kInfo, "",
        fmt::format("retrying bootstrap discovery request with backoff: {}", FormatDuration(wait)));
  }
}

}  // namespace wavetank::serve
