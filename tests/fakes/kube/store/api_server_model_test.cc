// The API server against what it promises, written down as a plain map: any order of creates, updates, patches, applies
// and deletes, with right, stale and no resourceVersions; watches from any point of the past must tell the same story.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <memory>
#include <optional>
#include <set>

#include "core/base/random.h"
#include "fakes/kube/store/api_server.h"
#include "sim/kernel/kernel.h"
#include "tests/long.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

// Any number of [low, high) from the first test on: sizes that grow would leave the early tests trivial.
int Pick(int low, int high) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high)); }

struct KindName {
  const char *api_version, *qualified;
};
// One name of a kind in two API groups: they must never see each other.
constexpr KindName kKinds[] = {{"v1", "Service."}, {"serving.knative.dev/v1", "Service.serving.knative.dev"}};

struct State {
  std::map<std::string, std::string> labels;
  int note = 0;  // stands for the spec
  int64_t resource_version = 0, generation = 0;
  std::string uid;
  friend bool operator==(const State&, const State&) = default;
};
using Key = std::pair<int, NamespacedName>;  // index of the kind
using Model = std::map<Key, State>;

State Read(const kube::Object& object) {
  State state;
  state.labels = {object.meta.labels.begin(), object.meta.labels.end()};
  state.note = object.body.at("spec").value("note", -1);
  state.resource_version = object.meta.resource_version;
  state.generation = object.meta.generation;
  state.uid = object.meta.uid;
  return state;
}

// Follows one kind by watching it.
struct Follower {
  int kind = 0;
  std::map<NamespacedName, State> seen;
  int64_t last = 0;
  std::string wrong;

  void On(const Change& change) {
    const NamespacedName name{change.object->meta.ns, change.object->meta.name};
    if (change.resource_version <= last) wrong += " out of order";
    last = change.resource_version;
    const bool known = seen.count(name) != 0;
    if (known == (change.type == kube::WatchEventType::kAdded)) wrong += " event does not fit what was seen";
    if (change.type == kube::WatchEventType::kDeleted) {
      seen.erase(name);
    } else {
      seen[name] = Read(*change.object);
    }
  }
};

TEST(ApiServerModel, IsAMapOfVersionedObjectsWhoseWatchersMissNothing) {
  EXPECT_TRUE(rc::check([] {
    constexpr size_t kHistory = 12;
    sim::Kernel kernel(1);
    ApiServer::Options options;
    options.name = "cluster1";
    options.history = kHistory;
    options.service_cidr = "10.96.0.0/29";  // six addresses for six Services: one that is not given back is missed
    ApiServer server(kernel.NewHost("cluster1", 0, nullptr), options);
    std::vector<int64_t> changes;  // every resourceVersion that a change made
    int64_t floor = server.resource_version();
    for (const char* ns : {"a", "b"}) {
      RC_ASSERT(server.Create({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", ns}}}}).ok());
      changes.push_back(server.resource_version());
    }
    Model model;
    std::map<int64_t, Model> past = {{server.resource_version(), model}};
    std::vector<std::unique_ptr<Follower>> followers;

    const int steps = Pick(1, 60);
    for (int step = 0; step < steps; ++step) {
      const int kind = Pick(0, 2), operation = Pick(0, 14);
      const NamespacedName name{Pick(0, 2) == 0 ? "a" : "b", std::string(1, static_cast<char>('x' + Pick(0, 3)))};
      const Key key{kind, name};
      const auto at = model.find(key);
      const bool there = at != model.end();
      const int64_t before = server.resource_version();
      State wanted = there ? at->second : State();
      if (Pick(0, 2) == 0) wanted.note = Pick(0, 3);
      if (Pick(0, 2) == 0) wanted.labels[Pick(0, 2) == 0 ? "p" : "q"] = Pick(0, 2) == 0 ? "1" : "2";
      if (Pick(0, 3) == 0) wanted.labels.erase("p");
      json body = {{"apiVersion", kKinds[kind].api_version},
                   {"kind", "Service"},
                   {"metadata", {{"name", name.name}, {"namespace", name.ns}, {"labels", wanted.labels}}},
                   {"spec", {{"note", wanted.note}, {"type", "NodePort"}, {"ports", {{{"port", 80}}}}}}};
      const int version = Pick(0, 3);  // none, the right one, a stale one
      const int64_t stale = there ? at->second.resource_version - 1 : 7;

      // What the map says must come of it.
      absl::StatusCode code = absl::StatusCode::kOk;
      absl::Status status;
      const bool changed = there && (wanted.labels != at->second.labels || wanted.note != at->second.note);
      const auto write = [&](const State* stored) {
        State next = wanted;
        next.generation = stored == nullptr ? 1 : stored->generation + (stored->note != wanted.note ? 1 : 0);
        if (kind == 0) next.generation = 0;  // Services of Kubernetes have none
        const ObjectRef now = server.Get(kKinds[kind].qualified, name);
        RC_ASSERT(now != nullptr);
        next.uid = now->meta.uid;
        if (stored != nullptr) RC_ASSERT(next.uid == stored->uid);
        next.resource_version = server.resource_version();
        RC_ASSERT(next.resource_version == before + 1);
        model[key] = next;
        changes.push_back(next.resource_version);
      };
      if (operation < 3) {
        status = server.Create(body).status();
        code = there ? absl::StatusCode::kAlreadyExists : absl::StatusCode::kOk;
        if (!there) write(nullptr);
      } else if (operation < 9) {
        const bool apply = operation >= 6;
        if (version == 1 && there) body["metadata"]["resourceVersion"] = std::to_string(at->second.resource_version);
        if (version == 2) body["metadata"]["resourceVersion"] = std::to_string(stale);
        status = apply ? server.Apply(body).status() : server.Update(body).status();
        if (!there) {
          code = !apply         ? absl::StatusCode::kNotFound
                 : version == 2 ? absl::StatusCode::kAborted
                                : absl::StatusCode::kOk;
          if (code == absl::StatusCode::kOk) write(nullptr);
        } else if (version == 2) {
          code = absl::StatusCode::kAborted;
        } else if (changed) {
          const State stored = at->second;
          write(&stored);
        }
      } else if (operation < 11) {
        json labels = wanted.labels;
        if (there) {
          for (const auto& [label, value] : at->second.labels) {
            if (wanted.labels.count(label) == 0) labels[label] = nullptr;
          }
        }
        status = server
                     .Patch(kKinds[kind].qualified, name,
                            {{"metadata", {{"labels", labels}}}, {"spec", {{"note", wanted.note}}}})
                     .status();
        code = there ? absl::StatusCode::kOk : absl::StatusCode::kNotFound;
        if (changed) {
          const State stored = at->second;
          write(&stored);
        }
      } else if (operation < 13) {
        status = server.Delete(kKinds[kind].qualified, name);
        code = there ? absl::StatusCode::kOk : absl::StatusCode::kNotFound;
        if (there) {
          model.erase(at);
          changes.push_back(server.resource_version());
        }
      } else {
        server.ForgetHistory();
        floor = server.resource_version();
      }
      if (status.code() != code) RC_LOG() << "operation " << operation << ": " << status << std::endl;
      RC_ASSERT(status.code() == code);
      if (changes.size() > kHistory) floor = std::max(floor, changes[changes.size() - kHistory - 1]);
      past[server.resource_version()] = model;

      if (Pick(0, 4) == 0) {
        // Somebody who knows the state of some moment watches from there on.
        auto since = past.begin();
        std::advance(since, Pick(0, static_cast<int>(past.size())));
        auto follower = std::make_unique<Follower>();
        follower->kind = kind;
        follower->last = since->first;
        for (const auto& [k, state] : since->second) {
          if (k.first == kind) follower->seen[k.second] = state;
        }
        const auto watch =
            server.StartWatch(kKinds[kind].qualified, since->first,
                              {[f = follower.get()](const Change& c) { f->On(c); }, [](const absl::Status&) {}});
        RC_ASSERT(watch.ok() == (since->first >= floor));
        if (watch.ok()) {
          followers.push_back(std::move(follower));
        } else {
          RC_ASSERT(absl::IsOutOfRange(watch.status()));
        }
      }

      std::set<std::string> ips;
      std::set<int> node_ports;
      for (int k = 0; k < 2; ++k) {
        std::map<NamespacedName, State> expected, listed;
        for (const auto& [other, state] : model) {
          if (other.first == k) expected[other.second] = state;
        }
        for (const ObjectRef& object : server.List(kKinds[k].qualified)) {
          listed[{object->meta.ns, object->meta.name}] = Read(*object);
          const json& spec = object->body["spec"];
          if (k == 0) RC_ASSERT(ips.insert(spec.at("clusterIP").get<std::string>()).second);
          if (k == 0) RC_ASSERT(node_ports.insert(spec.at("ports").at(0).at("nodePort").get<int>()).second);
          if (k == 1) RC_ASSERT(!spec.contains("clusterIP"));
        }
        RC_ASSERT(listed == expected);
        for (const auto& follower : followers) {
          RC_ASSERT(follower->wrong == "");
          if (follower->kind == k) RC_ASSERT(follower->seen == expected);
        }
      }
    }
  }));
}

// A client that lists, watches and lists again when its watch is gone (410), as an informer does.
struct Informed {
  ApiServer* server = nullptr;
  std::map<NamespacedName, int> known;
  int64_t version = 0;
  std::optional<ApiServer::WatchId> watch;
  int lists = 0;

  void List() {
    ++lists;
    known.clear();
    const kube::ObjectList list = server->ListForClients("ConfigMap");
    version = list.resource_version;
    for (const ObjectRef& object : list.items) Learn(*object);
  }
  // False if it had to give up its watch.
  bool Watch() {
    const absl::StatusOr<ApiServer::WatchId> id = server->StartWatch(
        "ConfigMap", version, {[this](const Change& c) { On(c); }, [this](const absl::Status&) { watch.reset(); }});
    if (id.ok()) watch = *id;
    return id.ok();
  }
  void On(const Change& change) {
    RC_ASSERT(change.resource_version > version);
    version = change.resource_version;
    const NamespacedName name{change.object->meta.ns, change.object->meta.name};
    // A watch is the difference of lists: what it adds was not there, what it changes or removes was.
    RC_ASSERT((known.count(name) == 0) == (change.type == kube::WatchEventType::kAdded));
    if (change.type == kube::WatchEventType::kDeleted) {
      known.erase(name);
    } else {
      Learn(*change.object);
    }
  }
  void Learn(const kube::Object& object) {
    known[{object.meta.ns, object.meta.name}] = object.body.at("data").value("value", -1);
  }
};

// How many operations each run has; many with ./test --long.
int Operations() { return LongTests() ? 10'000 : 150; }

TEST(ApiServerModel, WhoeverFollowsItKnowsEverythingThroughBrokenWatchesLostHistoryAndStaleReads) {
  EXPECT_TRUE(rc::check([] {
    sim::Kernel kernel(1);
    ApiServer::Options options;
    options.name = "cluster1";
    options.history = 40;
    options.create_namespaces = true;
    ApiServer server(kernel.NewHost("cluster1", 0, nullptr), options);
    std::map<NamespacedName, int> truth, visible;
    std::set<NamespacedName> held;  // by a finalizer, and going
    std::vector<std::unique_ptr<Informed>> clients;
    for (int i = 0; i < 4; ++i) {
      clients.push_back(std::make_unique<Informed>());
      clients.back()->server = &server;
    }
    for (const char* ns : {"a", "b"}) {
      RC_ASSERT(server.Create({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", ns}}}}).ok());
    }
    int64_t last_version = server.resource_version();
    bool stale = false;
    // One draw decides a run: a sequence of so many draws would drown the shrinker.
    RandomStream random(*rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<uint64_t>()), "operations");
    const int operations = Operations();
    for (int i = 0; i < operations; ++i) {
      const NamespacedName name{random.Below(2) == 0 ? "a" : "b", "c" + std::to_string(random.Below(12))};
      const bool there = truth.count(name) != 0;
      const int value = static_cast<int>(random.Below(4));
      const uint64_t operation = random.Below(20);
      const json body = {{"apiVersion", "v1"},
                         {"kind", "ConfigMap"},
                         {"metadata", {{"name", name.name}, {"namespace", name.ns}}},
                         {"data", {{"value", value}}}};
      if (operation < 8) {
        if (held.count(name) == 0) {
          RC_ASSERT(server.Apply(body).ok());
          truth[name] = value;
        }
      } else if (operation < 10) {
        if (held.count(name) == 0) {
          WriteOptions writer;
          writer.field_manager = random.Below(2) == 0 ? "one" : "two";
          RC_ASSERT(server.ServerSideApply(body, /*force=*/true, writer).ok());
          truth[name] = value;
        }
      } else if (operation < 12) {
        RC_ASSERT(server.Delete("ConfigMap", name).ok() == there);
        if (held.count(name) == 0) truth.erase(name);
      } else if (operation < 13) {
        if (there && held.count(name) == 0) {
          RC_ASSERT(server.Patch("ConfigMap", name, {{"metadata", {{"finalizers", {"a/b"}}}}}).ok());
          RC_ASSERT(server.Delete("ConfigMap", name).ok());
          RC_ASSERT(server.Get("ConfigMap", name) != nullptr);
          held.insert(name);
        }
      } else if (operation < 14) {
        if (held.erase(name) != 0) {
          RC_ASSERT(server.Patch("ConfigMap", name, {{"metadata", {{"finalizers", nullptr}}}}).ok());
          truth.erase(name);
        }
      } else if (operation < 15) {
        server.DropWatches(absl::UnavailableError("connection lost"));
      } else if (operation < 16) {
        if (random.Below(4) == 0) {
          server.ForgetHistory();
          server.DropWatches(absl::OutOfRangeError("too old resource version"));
        }
      } else if (operation < 17) {
        stale = !stale && random.Below(2) == 0;
        server.SetStaleReads(stale);
      } else {
        Informed& client = *clients[random.Below(clients.size())];
        if (!client.watch && !client.Watch()) {
          client.List();
          // While reads are stale the list may be of a time that the history no longer reaches.
          RC_ASSERT(client.Watch() || stale);
        }
      }
      RC_ASSERT(server.resource_version() >= last_version);
      last_version = server.resource_version();
      if (!stale) visible = truth;
      std::map<NamespacedName, int> listed;
      for (const ObjectRef& object : server.List("ConfigMap"))
        listed[{object->meta.ns, object->meta.name}] = object->body.at("data").value("value", -1);
      RC_ASSERT(listed == truth);
      for (const auto& client : clients) {
        if (client->watch) RC_ASSERT(client->known == visible);
      }
    }
  }));
}

}  // namespace
}  // namespace wavetank::fakekube
