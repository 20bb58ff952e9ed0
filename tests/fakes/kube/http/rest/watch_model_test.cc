// A watch is the difference of two lists: whatever is done, whatever the selector, whenever a watch begins, breaks off
// or finds its version gone, applying what it tells to the list it began with gives the list of now.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <string>

#include "core/base/random.h"
#include "tests/fakes/kube/http/rest_fixture.h"
#include "tests/long.h"

namespace wavetank::fakekube::http {
namespace {

struct WatchedApi : RestTest {
  WatchedApi() { Send("POST", "/api/v1/namespaces", {{"metadata", {{"name", "other"}}}}); }
  void TestBody() override {}
  using RestTest::Ask;
  using RestTest::cluster_;
  using RestTest::Get;
  using RestTest::rest_;
  using RestTest::Send;
};

using State = std::map<std::string, std::string>;  // ns/name -> resourceVersion

std::string KeyOf(const json& object) {
  return object["metadata"]["namespace"].get<std::string>() + "/" + object["metadata"]["name"].get<std::string>();
}

// A client as client-go's reflector is: lists, watches from there, begins again after 410.
class Reflector {
 public:
  Reflector(WatchedApi& api, std::string path, std::string selector)
      : api_(api), path_(std::move(path)), selector_(std::move(selector)) {
    Relist();
  }

  State Truth() const {
    State out;
    const Answer list = api_.Get(path_ + "?" + selector_);
    for (const json& item : list.body["items"]) out[KeyOf(item)] = item["metadata"]["resourceVersion"];
    return out;
  }
  const State& seen() const { return seen_; }
  int relists() const { return relists_; }
  const std::string& wrong() const { return wrong_; }

  void Break() { stream_ = nullptr; }
  void Resume() {
    if (stream_ != nullptr) return;
    Begin();
    if (gone_) Relist();
  }

 private:
  void Relist() {
    ++relists_;
    gone_ = false;
    seen_.clear();
    // In pages, as they come.
    std::string token;
    do {
      const Answer page = api_.Get(path_ + "?limit=2&" + selector_ + (token.empty() ? "" : "&continue=" + token));
      for (const json& item : page.body["items"]) seen_[KeyOf(item)] = item["metadata"]["resourceVersion"];
      token = page.body["metadata"].value("continue", "");
      version_ = std::stoll(page.body["metadata"]["resourceVersion"].get<std::string>());
    } while (!token.empty());
    Begin();
  }
  void Begin() {
    Response response = api_.rest_->Handle(
        api_.Ask("GET", path_ + "?watch=true&resourceVersion=" + std::to_string(version_) + "&" + selector_));
    stream_ = std::move(response.watch);
    stream_->Start([this](const Line& line) { On(json::parse(*line)); }, [this] { gone_ = true; });
  }
  void On(const json& event) {
    const std::string type = event["type"];
    if (type == "ERROR") {
      if (event["object"]["code"] != 410) wrong_ += " another error than 410";
      return;
    }
    const json& object = event["object"];
    const int64_t version = std::stoll(object["metadata"]["resourceVersion"].get<std::string>());
    if (version <= version_) wrong_ += " versions do not grow";
    version_ = version;
    const bool known = seen_.count(KeyOf(object)) != 0;
    if (known != (type != "ADDED")) wrong_ += " " + type + " does not fit what was seen of " + KeyOf(object);
    if (type == "DELETED") {
      seen_.erase(KeyOf(object));
    } else {
      seen_[KeyOf(object)] = object["metadata"]["resourceVersion"];
    }
  }

  WatchedApi& api_;
  const std::string path_, selector_;
  std::unique_ptr<LineStream> stream_;
  State seen_;
  int64_t version_ = 0;
  bool gone_ = false;
  int relists_ = 0;
  std::string wrong_;
};

// Of each run; many with ./test --long.
int Steps() { return LongTests() ? 10'000 : 60; }

TEST(WatchModel, AWatchIsTheDifferenceOfTwoLists) {
  int lost = 0;
  EXPECT_TRUE(rc::check([&] {
    WatchedApi api;
    std::vector<std::unique_ptr<Reflector>> reflectors;
    const char* const paths[] = {"/api/v1/configmaps", "/api/v1/namespaces/default/configmaps",
                                 "/api/v1/namespaces/other/configmaps"};
    const char* const selectors[] = {"", "labelSelector=app%3Da", "labelSelector=app%21%3Da",
                                     "fieldSelector=metadata.name%3Dn1"};
    for (const char* path : paths) {
      for (const char* selector : selectors) reflectors.push_back(std::make_unique<Reflector>(api, path, selector));
    }
    // One draw decides a run: a sequence of so many would drown the shrinker.
    RandomStream random(*rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<uint64_t>()), "steps");
    const auto draw = [&](int below) { return static_cast<int>(random.Below(static_cast<uint64_t>(below))); };
    const int steps = Steps();
    for (int step = 0; step < steps; ++step) {
      const std::string ns = draw(2) == 0 ? "default" : "other";
      const std::string name = "n" + std::to_string(draw(4));
      const std::string collection = "/api/v1/namespaces/" + ns + "/configmaps";
      const json labels = draw(3) == 0 ? json::object() : json{{"app", draw(2) == 0 ? "a" : "b"}};
      const json body = {{"metadata", {{"name", name}, {"labels", labels}}},
                         {"data", {{"v", std::to_string(draw(3))}}}};
      const int what = draw(20);
      if (what < 6) {
        api.Send("POST", collection, body);
      } else if (what < 10) {
        api.Send("PUT", collection + "/" + name, body);
      } else if (what < 13) {
        api.Send("PATCH", collection + "/" + name,
                 {{"metadata", {{"labels", {{"app", draw(2) == 0 ? json("a") : json()}}}}}},
                 "application/merge-patch+json");
      } else if (what < 16) {
        api.Send("DELETE", collection + "/" + name);
      } else if (what < 17) {
        api.cluster_->api().ForgetHistory();
      } else {
        Reflector& one = *reflectors[static_cast<size_t>(draw(static_cast<int>(reflectors.size())))];
        if (what < 19) {
          one.Break();
        } else {
          one.Resume();
        }
      }
    }
    for (const auto& one : reflectors) {
      one->Resume();
      RC_ASSERT(one->wrong() == "");
      RC_ASSERT(one->seen() == one->Truth());
      lost += one->relists() - 1;
    }
  }));
  EXPECT_GT(lost, 0) << "no watch ever found its version gone";
}

}  // namespace
}  // namespace wavetank::fakekube::http
