// What became of one request, hop by hop: what each proxy decided, what it could have chosen, and which try failed why.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"
#include "scenarios/answers/address_names.h"
#include "sim/traffic.h"

namespace wavetank::sim {
class World;
}

namespace wavetank::scenario {

struct RequestStory {
  struct Candidate {
    std::string address;  // with its owner
    uint32_t weight = 0, priority = 0;
    bool healthy = true, ejected = false, tls = false;
    std::string verdict;  // "answered", "tried, failed", "not chosen", "kept out by outlier detection"
  };
  struct Try {
    std::string upstream, outcome;
  };
  struct Stop {
    std::string who, decision;  // the proxy or application that accepted the connection, and what it did with it
  };
  std::string client, flow, asked, answer;
  std::string remark;  // what the question itself has to do with it; empty: nothing
  Time sent{};
  std::string listener, filter_chain, virtual_host, route, cluster;  // of the client's own proxy
  std::string route_object, cluster_object;  // what decided there: "VirtualService sample/reviews"; empty: defaults
  std::vector<Candidate> candidates;
  std::vector<Try> tries;
  std::vector<Stop> stops;
};

// "/apis/networking.istio.io/v1alpha3/namespaces/sample/virtual-service/reviews" as "VirtualService sample/reviews".
std::string ObjectAt(std::string_view path);

// The configuration that a failure is the doing of, as a failure's details tell: "VirtualService sample/reviews" whose
// timeout ran out. Empty: none.
std::string BlamedObject(const envoysim::RequestRecord& record);

// To be made while the record is valid. `names` has learned the world's addresses.
RequestStory TellRequest(sim::World& world, const AddressNames& names, const sim::TrafficRecord& record);

// Several lines; times are since `beginning`.
std::string StoryText(const RequestStory& story, Time beginning);
nlohmann::ordered_json StoryJson(const RequestStory& story, Time beginning);

}  // namespace wavetank::scenario
