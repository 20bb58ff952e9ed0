// Events of a cluster: what controllers, kubelets and clients tell of objects, for people to read.
//
// They are in a server of their own, as `kube-apiserver --etcd-servers-overrides=/events#...` keeps them: their
// versions count by themselves and no write of one is in the trace, so that a world is the same whether somebody reads
// them or not. For the same reason nothing of a world may depend on them. Each is gone an hour after its last write
// (kube-apiserver: --event-ttl), as seen by whoever looks.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

struct Telling {
  std::string_view component;  // "kubelet"
  std::string host;            // of a kubelet
  bool warning = false;
  std::string_view reason;  // "Scheduled"
  std::string message;
  std::string field_path;   // "spec.containers{web}"
  std::string_view action;  // of what is told by TellSeries()
};

class EventStore {
 public:
  // `of` must outlive it.
  explicit EventStore(ApiServer& of);

  // The Events that are not over, as objects of kind Event of the core group.
  ApiServer& objects();

  // From now on somebody may look: what controllers tell is kept. Nothing in a world changes by it.
  void Listen() { listening_ = true; }
  bool listening() const { return listening_; }

  // Tells of an object as controllers and kubelets do (client-go: tools/record): the same again raises the count of the
  // Event that is there, the eleventh message that differs in its words alone within ten minutes is combined with those
  // after it, and a source tells no more than 25 of one object at once, then one in five minutes.
  void Tell(const kube::Object& about, Telling telling);
  // The same as the scheduler does (client-go: tools/events): what comes again within six minutes is a series.
  void TellSeries(const kube::Object& about, Telling telling);

  // With what lies in it.
  void RemoveNamespace(const std::string& ns);

 private:
  struct Similar {
    std::set<std::string> messages;
    Time last{};
  };
  struct Tokens {
    double left = 0;
    Time last{};
  };

  void Expire();
  bool Spam(const std::string& source);
  // The key under which it is counted; may change the words.
  std::string Combine(const kube::Object& about, Telling* telling, bool* combined);
  nlohmann::json NewEvent(const kube::Object& about, const Telling& telling);
  void Keep(const std::string& key, nlohmann::json event);
  ObjectRef Known(const std::string& key);
  std::string MicroNow() const;

  ApiServer& of_;
  ApiServer objects_;
  bool listening_ = false;
  struct Written {
    Time at;
    NamespacedName name;
    int64_t version;
  };
  std::deque<Written> written_;
  std::map<std::string, NamespacedName> known_;  // by what is told
  std::map<std::string, Similar> similar_;
  std::map<std::string, Tokens> tokens_;
  size_t swept_ = 0;  // how many were left when those that are over were forgotten
  Subscriptions subscriptions_;
};

}  // namespace wavetank::fakekube
