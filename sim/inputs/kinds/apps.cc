#include "sim/inputs/kinds/apps.h"

#include "absl/strings/numbers.h"
#include "sim/inputs/fields.h"
#include "sim/world_inputs.h"

namespace wavetank::sim::inputs {
namespace {

constexpr size_t kMostCalls = 100;
constexpr uint16_t kCallFailed = AppBehaviour().call_failed;

void VisitQuantile(FieldVisitor& visitor, AppBehaviour::Quantile& point) {
  visitor.Visit("sharePpm", Need::kRequired, point.share_ppm);
  visitor.Visit("ns", Need::kRequired, point.time);
  if (point.share_ppm <= 0 || point.share_ppm > 1'000'000) visitor.Refuse("sharePpm", "is no share");
  if (point.time < Duration::zero()) visitor.Refuse("ns", "is negative");
}

void VisitAnswer(FieldVisitor& visitor, AppAnswer& answer) {
  int64_t code = answer.code;
  visitor.Visit("code", Need::kLenient, code);
  if (code < 200 || code > 599) return visitor.Refuse("code", "is no final status of HTTP, 200 to 599");
  answer.code = static_cast<uint16_t>(code);
  visitor.Visit("reset", Need::kSparse, answer.reset);
  visitor.Visit("sharePpm", Need::kLenient, answer.share_ppm);
  visitor.Visit("header", Need::kSparse, answer.header);
  visitor.Visit("value", Need::kSparse, answer.value);
}

void VisitCall(FieldVisitor& visitor, AppCall& call) {
  visitor.Visit("host", Need::kRequired, call.host);
  visitor.Visit("port", Need::kLenient, call.port);
  if (call.port < 1 || call.port > 65535) visitor.Refuse("port", "is no port, 1 to 65535");
  visitor.Visit("path", Need::kLenient, call.path);
  visitor.Visit("method", Need::kLenient, call.method);
  std::map<std::string, std::string> headers(call.headers.begin(), call.headers.end());
  visitor.Visit("headers", Need::kSparse, headers);
  if (visitor.reading()) call.headers.assign(headers.begin(), headers.end());
  visitor.Visit("onPath", Need::kSparse, call.on_path);
  visitor.Visit("sharePpm", Need::kLenient, call.share_ppm);
  visitor.Visit("timeoutNs", Need::kSparse, call.timeout);
  VisitRetry(visitor, call.retry);
  visitor.Visit("optional", Need::kSparse, call.optional);
}

template <class Item>
void VisitList(FieldVisitor& visitor, std::string_view name, std::vector<Item>& items,
               void (*fields)(FieldVisitor&, Item&)) {
  size_t count = items.size();
  visitor.Mappings(name, &count, [&](size_t i, FieldVisitor& v) {
    if (v.reading()) items.resize(i + 1);
    fields(v, items[i]);
  });
}

}  // namespace

void VisitRetry(FieldVisitor& visitor, RetryRule& rule) {
  bool present = rule.attempts > 1;
  visitor.Mapping("retries", &present, [&rule](FieldVisitor& v) {
    v.Visit("attempts", Need::kRequired, rule.attempts);
    if (rule.attempts < 1 || rule.attempts > 100) v.Refuse("attempts", "is no number from 1 to 100");
    v.Visit("backOffNs", Need::kLenient, rule.back_off);
    v.Visit("mostNs", Need::kLenient, rule.most);
    if (rule.back_off < Duration::zero() || rule.most < Duration::zero()) v.Refuse("backOffNs", "is negative");
    v.Visit("on", Need::kLenient, rule.on);
    for (const std::string& reason : rule.on) {
      if (!IsRetryReason(reason)) v.Refuse("on", "holds what is no 5xx, 4xx, gateway-error, no-answer or status");
    }
  });
}

void SetBehaviour::Fields(FieldVisitor& visitor) {
  AppBehaviour& b = rule.behaviour;
  visitor.Visit("cluster", Need::kSparse, rule.cluster);
  visitor.Visit("namespace", Need::kSparse, rule.ns);
  visitor.Visit("app", Need::kSparse, rule.app);
  visitor.Visit("version", Need::kSparse, rule.version);
  VisitList(visitor, "latency", b.latency, VisitQuantile);
  for (size_t i = 1; i < b.latency.size(); ++i) {
    if (b.latency[i].share_ppm <= b.latency[i - 1].share_ppm || b.latency[i].time < b.latency[i - 1].time)
      visitor.Refuse("latency", "does not grow from point to point");
  }
  VisitList(visitor, "answers", b.answers, VisitAnswer);
  visitor.Visit("bodyOverNs", Need::kSparse, b.body_over);
  int64_t pieces = b.body_pieces == 1 ? 0 : b.body_pieces;
  visitor.Visit("bodyPieces", Need::kSparse, pieces);
  if (b.body_over < Duration::zero() || pieces < 0) visitor.Refuse("bodyOverNs", "is negative, or bodyPieces");
  if (visitor.reading()) b.body_pieces = std::max<int64_t>(pieces, 1);
  std::map<std::string, std::string> trailers(b.trailers.begin(), b.trailers.end());
  visitor.Visit("trailers", Need::kSparse, trailers);
  if (visitor.reading()) b.trailers.assign(trailers.begin(), trailers.end());
  visitor.Visit("ready", Need::kLenient, b.ready);
  visitor.Visit("readyForNs", Need::kSparse, b.ready_for);
  visitor.Visit("unreadyForNs", Need::kSparse, b.unready_for);
  visitor.Visit("slowStartNs", Need::kSparse, b.slow_start);
  visitor.Visit("slowFactor", Need::kLenient, b.slow_factor);
  if (b.calls.size() > kMostCalls) visitor.Refuse("calls", "are more than 100");
  VisitList(visitor, "calls", b.calls, VisitCall);
  bool tls = b.tls.has_value();
  visitor.Mapping("tls", &tls, [&b](FieldVisitor& v) {
    if (v.reading()) b.tls.emplace();
    std::vector<std::string> ports;
    for (const int64_t port : b.tls->ports) ports.push_back(std::to_string(port));
    v.Visit("ports", Need::kSparse, ports);
    if (v.reading()) b.tls->ports.clear();
    for (const std::string& text : ports) {
      int64_t port = 0;
      if (!absl::SimpleAtoi(text, &port) || port < 1 || port > 65535) v.Refuse("ports", "holds what is no port");
      if (v.reading()) b.tls->ports.push_back(port);
    }
    v.Visit("certificate", Need::kSparse, b.tls->certificate);
    v.Visit("clients", Need::kSparse, b.tls->clients);
  });
  visitor.Visit("parallel", Need::kSparse, b.parallel);
  int64_t failed = b.call_failed == kCallFailed ? 0 : b.call_failed;
  visitor.Visit("callFailed", Need::kSparse, failed);
  if (failed != 0 && (failed < 400 || failed > 599)) return visitor.Refuse("callFailed", "is no error, 400 to 599");
  if (visitor.reading()) b.call_failed = failed == 0 ? kCallFailed : static_cast<uint16_t>(failed);
}

absl::Status SetBehaviour::Apply(InputTarget& target) const {
  if (!rule.cluster.empty()) {
    if (absl::StatusOr<World::Site*> site = target.FindSite(rule.cluster); !site.ok()) return site.status();
  }
  if (rule.behaviour.tls) {
    // What it is to show has to be there for every pod that runs.
    sim::AppBehaviours only;
    only.Set(rule);
    for (PodProcess* pod : target.AllPods()) {
      const std::string& version = target.commons.servers.at(pod->server()).version;
      if (only.Of(pod->site().name, pod->pod()->meta.ns, pod->app(), version) == nullptr) continue;
      const auto server = ServerOf(*rule.behaviour.tls, pod->pod()->meta.ns, "", pod->site().Secrets());
      if (!server.ok()) return server.status();
    }
  }
  target.commons.behaviours.Set(rule);
  for (PodProcess* pod : target.AllPods()) pod->TakeBehaviour();
  return absl::OkStatus();
}

}  // namespace wavetank::sim::inputs

namespace wavetank::sim {
void RegisterApps(InputTable& table) { table.Add<inputs::SetBehaviour>(); }
}  // namespace wavetank::sim
