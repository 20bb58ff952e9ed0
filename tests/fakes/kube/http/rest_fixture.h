// The REST API of one cluster in virtual time, without any socket.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fakes/kube/cluster.h"
#include "fakes/kube/http/rest/rest.h"
#include "sim/kernel/kernel.h"

namespace wavetank::fakekube::http {

using nlohmann::json;

struct Answer {
  int code = 0;
  json body;
};

class RestTest : public ::testing::Test {
 protected:
  RestTest() {
    options_.name = "cluster1";
    options_.nodes = {{"node1", "r1", "z1", ""}};
    Restart();
  }
  // Anew, with what `options_` and `rest_options_` say now.
  void Restart() {
    rest_ = nullptr;
    cluster_ = std::make_unique<Cluster>(host_, options_, nullptr, nullptr);
    rest_options_.tokens = &tokens_;
    rest_ = std::make_unique<RestApi>(cluster_->api(), rest_options_);
  }

  static Request Ask(const std::string& method, const std::string& target, const json& body = nullptr,
                     const std::string& content_type = "application/json") {
    Request request;
    request.method = method;
    const size_t mark = target.find('?');
    request.path = target.substr(0, mark);
    if (mark != std::string::npos) request.query = target.substr(mark + 1);
    if (!body.is_null()) request.body = body.dump();
    request.content_type = content_type;
    request.accept = "application/json";
    return request;
  }
  Answer Send(const Request& request) {
    Response response = rest_->Handle(request);
    EXPECT_EQ(response.watch, nullptr) << "this is a watch";
    return {response.code, json::parse(response.Text(), nullptr, false)};
  }
  Answer Send(const std::string& method, const std::string& target, const json& body = nullptr,
              const std::string& content_type = "application/json") {
    return Send(Ask(method, target, body, content_type));
  }
  Answer Get(const std::string& target) { return Send("GET", target); }
  // Metadata of what `target` lists, by name.
  std::vector<std::string> Names(const std::string& target) {
    std::vector<std::string> names;
    const Answer answer = Get(target);
    for (const json& item : answer.body["items"]) names.push_back(item["metadata"]["name"]);
    return names;
  }

  // A watch that keeps what it got.
  struct Watcher {
    std::unique_ptr<LineStream> stream;
    std::vector<json> events;
    bool ended = false;
    // "ADDED a", "DELETED b".
    std::vector<std::string> Told() const {
      std::vector<std::string> out;
      for (const json& event : events)
        out.push_back(event["type"].get<std::string>() + " " + event["object"]["metadata"].value("name", ""));
      return out;
    }
  };
  std::unique_ptr<Watcher> Watch(const std::string& target) {
    Response response = rest_->Handle(Ask("GET", target));
    auto watcher = std::make_unique<Watcher>();
    if (response.watch == nullptr) {
      ADD_FAILURE() << response.Text();
      return watcher;
    }
    watcher->stream = std::move(response.watch);
    watcher->stream->Start([w = watcher.get()](const Line& line) { w->events.push_back(json::parse(*line)); },
                           [w = watcher.get()] { w->ended = true; });
    return watcher;
  }

  static json ConfigMap(const std::string& name, const json& labels = json::object(), const std::string& value = "1") {
    return {{"apiVersion", "v1"},
            {"kind", "ConfigMap"},
            {"metadata", {{"name", name}, {"labels", labels}}},
            {"data", {{"value", value}}}};
  }

  sim::Kernel kernel_{1};
  Host& host_ = kernel_.NewHost("cluster1", 0, nullptr);
  kube::TokenAuthority tokens_{1, "cluster1"};
  ClusterOptions options_;
  RestOptions rest_options_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<RestApi> rest_;
};

}  // namespace wavetank::fakekube::http
