#include "sim/pod_calls.h"

#include "core/base/assert.h"
#include "fmt/format.h"
#include "sim/pod_process.h"

namespace wavetank::sim {

struct PodCalls::Prepared {
  AppCall call;
  TrafficSpec spec;
  envoysim::RequestSpec request;
};

// The calls for one request.
struct PodCalls::Round {
  std::vector<std::shared_ptr<const Prepared>> calls;
  size_t next = 0, under_way = 0;
  bool failed = false, told = false;
  std::function<void(bool)> done;

  // Nobody waits for what is still under way once one has failed.
  void Tell(bool ok) {
    if (std::exchange(told, true)) return;
    done(ok);
  }
};

std::shared_ptr<const PodCalls::Prepared> PodCalls::Prepare(const AppBehaviour& behaviour, size_t index,
                                                            uint16_t depth) {
  std::shared_ptr<const Prepared>& kept = prepared_[{index, depth}];
  if (kept != nullptr) return kept;
  auto made = std::make_shared<Prepared>();
  const AppCall& call = made->call = behaviour.calls[index];
  const PodIdentity& caller = pod_.site().commons->servers.at(pod_.server());
  TrafficSpec& spec = made->spec;
  spec.flow = fmt::format("{}@{} calls {}:{}", caller.app.empty() ? caller.name : caller.app, caller.cluster, call.host,
                          call.port);
  spec.cluster = caller.cluster;
  spec.ns = caller.ns;
  spec.app = caller.app;
  spec.host = call.host;
  spec.port = static_cast<int>(call.port);
  spec.path = call.path;
  spec.method = call.method;
  spec.headers = call.headers;
  spec.keep_alive = true;
  made->request = RequestOf(spec);
  made->request.depth = static_cast<uint16_t>(depth + 1);
  return kept = std::move(made);
}

void PodCalls::Make(const AppBehaviour& behaviour, std::vector<size_t> due, uint16_t depth,
                    std::function<void(bool ok)> done) {
  const auto round = std::make_shared<Round>();
  round->done = std::move(done);
  for (const size_t index : due) round->calls.push_back(Prepare(behaviour, index, depth));
  if (!behaviour.parallel) return Next(round);
  round->next = round->calls.size();
  round->under_way = round->calls.size();
  for (const std::shared_ptr<const Prepared>& call : round->calls) Begin(round, call);
}

void PodCalls::Next(const std::shared_ptr<Round>& round) {
  if (round->failed || round->next == round->calls.size()) {
    if (round->under_way == 0) round->Tell(!round->failed);
    return;
  }
  WAVETANK_ASSERT(round->next < round->calls.size(), round->next, round->calls.size());
  ++round->under_way;
  Begin(round, round->calls[round->next++]);
}

void PodCalls::Begin(const std::shared_ptr<Round>& round, const std::shared_ptr<const Prepared>& call) {
  Attempt(round, call, pod_.site().commons->host->Now(), 1);
}

void PodCalls::Attempt(const std::shared_ptr<Round>& round, const std::shared_ptr<const Prepared>& call, Time first,
                       int64_t attempt) {
  SendRequest(
      pod_, call->spec, call->request, {call->spec.keep_alive, call->call.timeout},
      [this, weak = std::weak_ptr<int>(alive_), round, call, first, attempt](const envoysim::RequestRecord& record) {
        if (weak.expired()) return;
        if (!call->call.retry.Again(attempt, record)) return Ended(round, *call, first, attempt, record);
        pod_.site().commons->host->RunAfter(call->call.retry.Wait(attempt), [this, weak, round, call, first, attempt] {
          if (!weak.expired()) Attempt(round, call, first, attempt + 1);
        });
      });
}

void PodCalls::Ended(const std::shared_ptr<Round>& round, const Prepared& call, Time first, int64_t attempts,
                     const envoysim::RequestRecord& record) {
  Commons& commons = *pod_.site().commons;
  if (!commons.on_call.empty()) {
    TellRecord(commons, call.spec, pod_.name(), first, attempts, record,
               [&commons](const TrafficRecord& told) { commons.on_call.Tell(told); });
  }
  WAVETANK_ASSERT(round->under_way > 0, round->under_way);  // each call ends once
  --round->under_way;
  if (!Succeeded(record) && !call.call.optional) {
    round->failed = true;
    return round->Tell(false);
  }
  Next(round);
}

}  // namespace wavetank::sim
