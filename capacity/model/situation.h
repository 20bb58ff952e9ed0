// What a cost is asked for: a mesh in numbers, as one istiod sees it, and what happens to it.
#pragma once

#include <string_view>

namespace wavetank::capacity {

// As one istiod sees it: services and endpoints of all clusters that it watches, proxies that are connected to it.
struct MeshSize {
  double proxies = 0;
  double services = 0;
  double endpoints = 0;  // pods behind services
  double clusters = 1;   // its own included
  double scope = 0;      // services that a proxy sees (a Sidecar's egress); 0: all of them

  double Visible() const { return scope > 0 && scope < services ? scope : services; }
  double VisibleEndpoints() const { return services > 0 ? endpoints * Visible() / services : 0; }
};

// Kinds of change by what istiod pushes for them.
enum class Change {
  kStart,          // istiod starts: lists everything, serves no proxy yet
  kConnect,        // proxies connect and get their first configuration
  kEndpoints,      // an EndpointSlice: one EDS resource, an incremental push
  kService,        // a Service or what routes to it: full push, endpoints of what is new alone
  kPolicy,         // PeerAuthentication: full push with everyone's endpoints, no routes
  kEverything,     // a network gateway's address, the mesh's config: full push of all types
  kSecretAdded,    // a remote cluster joins
  kSecretDeleted,  // and leaves
};
inline constexpr int kChanges = static_cast<int>(Change::kSecretDeleted) + 1;

// "endpoints", "service", ... for people.
std::string_view NameOf(Change change);
inline bool IsFull(Change change) { return change >= Change::kService; }
inline bool PushesAllEndpoints(Change change) { return change >= Change::kPolicy; }
inline bool PushesRoutes(Change change) { return IsFull(change) && change != Change::kPolicy; }

struct Situation {
  MeshSize mesh;
  Change change = Change::kEndpoints;
  double events = 1;        // that were merged into the push
  bool after_full = false;  // the process has made a full push to its proxies (its heap has grown by then)
};

}  // namespace wavetank::capacity
