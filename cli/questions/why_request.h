// `wavetank why` of a request: of a scenario's flow, or of a probe that is sent now.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scenarios/answers/request_story.h"
#include "scenarios/runner/runner.h"

namespace wavetank::cli {

struct RequestQuestion {
  std::string from, to, flow;
  std::string path = "/", method = "GET", protocol = "http";  // of a probe
  std::vector<std::string> headers;                           // likewise: "name: value"
  std::optional<int64_t> number;                              // of the requests that fit, from 1
  bool failed = false, retried = false;

  bool probe() const { return !from.empty() || !to.empty(); }
  bool of_run() const { return !flow.empty() || number || failed || retried; }
};

// InvalidArgument: options that do not go together.
absl::Status CheckQuestion(const RequestQuestion& question);

// Sends one request from a pod and tells it. InvalidArgument: there is no such pod, or TO is no HOST:PORT.
absl::StatusOr<scenario::RequestStory> Probe(const RequestQuestion& question, sim::World& world);

// Watches a run for the request that is asked about; must outlive it.
class RequestWatch {
 public:
  explicit RequestWatch(const RequestQuestion& question) : question_(question) {}
  void Attach(scenario::RunOptions* options);
  // NotFound: no such request was sent until the run's end; says how many there were.
  absl::StatusOr<scenario::RequestStory> Found() const;
  Time beginning() const { return beginning_; }  // of the world that it watched

 private:
  const RequestQuestion& question_;
  int64_t seen_ = 0, fitting_ = 0;
  Time beginning_{};
  std::optional<scenario::RequestStory> story_;
};

}  // namespace wavetank::cli
