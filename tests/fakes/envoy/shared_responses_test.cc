// Envoys of one world share what they are sent, and what each works out of it. None of that may be seen from outside.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fakes/envoy/config/config_store.h"
#include "tests/fakes/envoy/lab.h"

namespace wavetank::envoysim::lab {
namespace {

struct Response {
  XdsType type;
  std::vector<std::string> resources;
};

// What an ADS server that knows of a dozen clusters may send, most of it again and again; now and then a name twice, a
// resource that is refused or no resource at all, in any order.
class Script {
 public:
  explicit Script(uint32_t seed) : random_(seed) {}

  Response Next() {
    const bool clusters = Roll(4) == 0;
    Response out{clusters ? XdsType::kCds : XdsType::kEds, {}};
    if (clusters) {
      for (int n = 0; n < Roll(4); ++n) {
        const std::string name = Name();
        if (present_.contains(name) ? Roll(3) == 0 : true) {
          present_[name] = Roll(3);
        } else {
          present_.erase(name);
        }
      }
      for (const auto& [name, variant] : present_) out.resources.push_back(Cluster(name, variant));
    } else {
      const bool all = Roll(2) == 0;
      for (const auto& [name, variant] : present_) {
        if (!all && Roll(6) != 0) continue;
        if (Roll(4) == 0) endpoints_[name] = Roll(4);
        out.resources.push_back(Endpoints(name, endpoints_[name]));
      }
      if (Roll(12) == 0) out.resources.push_back(Endpoints("unknown", Roll(4)));
    }
    if (Roll(8) == 0) std::shuffle(out.resources.begin(), out.resources.end(), random_);
    if (Roll(20) == 0 && !out.resources.empty()) out.resources.push_back(out.resources.front());
    if (Roll(20) == 0)
      out.resources.push_back(clusters ? EdsCluster("bad", R"("lb_policy": "CLUSTER_PROVIDED")") : "\xff");
    return out;
  }

 private:
  int Roll(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  std::string Name() { return "outbound|80||service" + std::to_string(Roll(12)); }
  static std::string Cluster(const std::string& name, int variant) {
    if (variant == 2) return StaticCluster(name, {{"10.0.1.1:80"}});
    return EdsCluster(name, variant == 1 ? R"("lb_policy": "RANDOM")" : "");
  }
  static std::string Endpoints(const std::string& name, int variant) {
    std::vector<EndpointSpec> endpoints;
    for (int i = 0; i < variant; ++i) endpoints.push_back({"10.0.0." + std::to_string(i + 1) + ":80"});
    return Assignment(name, endpoints);
  }

  std::mt19937 random_;
  std::map<std::string, int> present_, endpoints_;
};

// Two Envoys that are sent the same but for an own cluster each, as objects of one's own or shared ones.
class World {
 public:
  World(bool shared, bool reuse_work) : shared_(shared), lab_(1, Instant()) {
    lab_.plane.configs().set_reuses_work(reuse_work);
    for (const char* ip : {"10.0.0.1", "10.0.0.2"}) {
      proxies_.push_back(&lab_.AddProxy(std::string("p") + ip, ip));
      proxies_.back()->envoy->Start();
    }
    lab_.RunFor(1ms);
  }

  void Take(const Response& response, const std::string& version) {
    std::shared_ptr<const ResponseBody> common;
    for (size_t i = 0; i < proxies_.size(); ++i) {
      std::vector<std::string> resources = response.resources;
      const bool own = response.type == XdsType::kCds;
      if (own) resources.push_back(StaticCluster("inbound|" + std::to_string(i), {{"127.0.0.1:80"}}));
      AdsScript& ads = *proxies_[i]->ads;
      if (!shared_) {
        ads.Send(response.type, version, resources);
        continue;
      }
      if (common == nullptr || own) common = Body(response.type, resources);
      ads.Send(version, common);
    }
    lab_.RunFor(1ms);
  }

  std::string State() {
    std::string out = lab_.kernel.digest().Hex() + "\n";
    for (const Lab::Proxy* proxy : proxies_) {
      for (const std::string& line : proxy->ads->Log()) out += line + "\n";
      for (const auto& [type, error] : proxy->context->rejected) out += error + "\n";
      for (const std::string& name : proxy->envoy->ClusterNames()) out += name + "\n";
      for (const EndpointStatus& e : proxy->envoy->Endpoints()) out += e.cluster + " " + e.address + "\n";
      proxy->ads->log.clear();
    }
    return out;
  }

 private:
  std::shared_ptr<const ResponseBody> Body(XdsType type, const std::vector<std::string>& resources) {
    auto body = std::make_shared<ResponseBody>();
    body->type_url = XdsTypeUrl(type);
    for (const std::string& bytes : resources) {
      auto& known = bytes_[bytes];
      if (known == nullptr) {
        const auto own = std::make_shared<std::pair<std::string, std::string_view>>(bytes, "");
        own->second = own->first;
        known = BytesRef(own, &own->second);
      }
      body->resources.push_back(known);
      body->bytes += bytes.size();
    }
    return body;
  }

  const bool shared_;
  Lab lab_;
  std::vector<Lab::Proxy*> proxies_;
  std::map<std::string, BytesRef> bytes_;
};

TEST(SharedResponses, EnvoysDoTheSameWhateverIsSharedOrWorkedOutAnew) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    Script script(seed);
    World anew(false, false), own(false, true), shared(true, true);
    for (int step = 0; step < 60; ++step) {
      const Response response = script.Next();
      for (World* world : {&anew, &own, &shared}) world->Take(response, std::to_string(step));
      const std::string state = anew.State();
      ASSERT_EQ(own.State(), state) << "seed " << seed << ", step " << step;
      ASSERT_EQ(shared.State(), state) << "seed " << seed << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace wavetank::envoysim::lab
