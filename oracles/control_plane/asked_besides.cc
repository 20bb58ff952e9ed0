#include "oracles/control_plane/asked_besides.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "core/istiod/istiod.h"
#include "core/xds/proto_adapter.h"
#include "envoy/config/core/v3/extension.pb.h"
#include "envoy/service/discovery/v3/discovery.pb.h"

namespace wavetank::serve {
namespace {

using pilot::XdsType;
using Resources = scenario::XdsSnapshot::Resources;

// One type asked for by one proxy, of a real istiod or of the world's own.
class Question final : public envoysim::AdsStreamObserver, public pilot::AdsStream {
 public:
  Question(sim::World& world, const sim::PodProcess& pod, XdsType type, std::vector<std::string> names)
      : proxy_(pod.name()), type_(type) {
    const std::string& cluster = pod.site().name;
    if (sim::AdsElsewhere* elsewhere = world.commons().ads_elsewhere) {
      real_ = elsewhere->Open(cluster, proxy_, envoysim::AdsTransport::Protocol::kSotw, this);
      envoysim::DiscoveryRequest request;
      request.set_type_url(std::string(pilot::TypeUrl(type)));
      for (const std::string& name : names) request.add_resource_names(name);
      pilot::ToProto(pod.node(), request.mutable_node());
      real_->Send(std::move(request));
      return;
    }
    sim::IstiodProcess* istiod = world.IstiodOf(cluster);
    if (istiod == nullptr) return;
    ours_ = istiod->istiod().OpenAds({.tls = false}, "", *this);
    pilot::DiscoveryRequest request;
    request.type = type;
    request.resource_names = std::move(names);
    request.node = std::make_shared<const pilot::Node>(pod.node());
    ours_->OnRequest(std::move(request));
  }

  const std::string& proxy() const { return proxy_; }
  const char* type() const { return type_ == XdsType::kNds ? "nds" : "ecds"; }
  bool answered() const { return answer_.has_value(); }
  Resources Take() { return *std::exchange(answer_, std::nullopt); }

  // envoysim::AdsStreamObserver
  void OnResponse(envoysim::SotwResponse response) override {
    if (answer_) return;
    answer_.emplace();
    for (const BytesRef& bytes : response.body->resources) Add(bytes);
  }
  void OnDeltaResponse(std::shared_ptr<const envoysim::DeltaDiscoveryResponse>) override {}
  void OnClose(const absl::Status&) override {}
  // pilot::AdsStream
  void Send(std::shared_ptr<const pilot::DiscoveryResponse> response) override {
    if (answer_) return;
    answer_.emplace();
    for (const pilot::Resource& resource : response->resources) Add(resource.bytes);
  }
  void SendDelta(std::shared_ptr<const pilot::DeltaDiscoveryResponse>) override {}
  void Close(const absl::Status&) override {}

 private:
  void Add(const BytesRef& bytes) {
    std::string name;  // a name table has none
    envoy::config::core::v3::TypedExtensionConfig extension;
    if (type_ == XdsType::kEcds && extension.ParseFromString(std::string(*bytes))) name = extension.name();
    (*answer_)[name] = bytes;
  }

  const std::string proxy_;
  const XdsType type_;
  std::optional<Resources> answer_;
  std::unique_ptr<envoysim::AdsStream> real_;  // last, as the next: they go first
  std::unique_ptr<pilot::AdsConnection> ours_;
};

}  // namespace

bool AskBesides(sim::World& world, HeldCollector& held, Duration limit) {
  // istiod lets only so many new streams in per second, and refuses those that wait longer than a second.
  constexpr size_t kAtOnce = 8;
  struct Wanted {
    const sim::PodProcess* pod;
    XdsType type;
    std::vector<std::string> names;
  };
  std::deque<Wanted> wanted;
  for (const sim::PodProcess* pod : world.Pods()) {
    if (pod->envoy() == nullptr) continue;
    if (!pod->router()) wanted.push_back({pod, XdsType::kNds, {}});
    std::vector<std::string> names = held.ExtensionsOf(pod->name());
    held.Put(pod->name(), "ecds", {});
    if (!names.empty()) wanted.push_back({pod, XdsType::kEcds, std::move(names)});
  }
  std::vector<std::unique_ptr<Question>> under_way;
  const Time deadline = world.Now() + limit;
  while ((!wanted.empty() || !under_way.empty()) && world.Now() < deadline) {
    while (!wanted.empty() && under_way.size() < kAtOnce) {
      Wanted& next = wanted.front();
      // The pod may have gone while the others were asked.
      const std::vector<const sim::PodProcess*> pods = world.Pods();
      if (std::find(pods.begin(), pods.end(), next.pod) != pods.end())
        under_way.push_back(std::make_unique<Question>(world, *next.pod, next.type, std::move(next.names)));
      wanted.pop_front();
    }
    world.RunUntil(world.Now() + 20ms);
    std::erase_if(under_way, [&](const std::unique_ptr<Question>& question) {
      if (!question->answered()) return false;
      held.Put(question->proxy(), question->type(), question->Take());
      return true;
    });
  }
  for (const auto& question : under_way) held.Put(question->proxy(), question->type(), {});
  return wanted.empty() && under_way.empty();
}

}  // namespace wavetank::serve
