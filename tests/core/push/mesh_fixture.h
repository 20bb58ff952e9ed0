// A small mesh without clusters: services by hand, configurations out of YAML, push contexts of them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/config/store/store.h"
#include "core/model/gateway.h"
#include "core/push/push_context.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/config/yaml_config.h"
#include "tests/core/push/fake_discovery.h"

namespace wavetank::pilot {

class MeshTest : public ::testing::Test {
 protected:
  MeshTest() {
    env.discovery = &discovery;
    env.configs = &configs;
    env.endpoints = &endpoints;
    env.mesh = config::DefaultMeshConfig();
  }

  // "name" in "ns" with ports; exported to whom `export_to` says.
  std::shared_ptr<Service> AddService(std::string_view name, std::string_view ns, std::vector<int> ports = {80},
                                      ExportTo export_to = {}, int second = 0) {
    auto service = std::make_shared<Service>();
    service->hostname = std::string(name) + "." + std::string(ns) + ".svc.cluster.local";
    for (const int port : ports) service->ports.push_back({"http-" + std::to_string(port), port, Protocol::kHttp});
    service->creation_unix_seconds = second;
    service->attributes.name = std::string(name);
    service->attributes.ns = std::string(ns);
    service->attributes.export_to = std::move(export_to);
    discovery.services.push_back(service);
    return service;
  }

  void Put(std::string_view kind, std::string_view ns, std::string_view name, std::string_view spec, int second = 0) {
    configs.Put(config::ParseYaml(config::ConfigYaml(kind, ns, name, spec, second)));
  }
  void Mesh(std::string_view yaml) { env.mesh = config::ApplyMeshConfigDefaults(yaml).value(); }

  PushContextRef Push() { return PushContext::Create(env, nullptr, {}, "v1"); }

  static Proxy Sidecar(std::string ns, Labels labels = {}) {
    Proxy proxy;
    proxy.config_namespace = std::move(ns);
    proxy.labels = std::move(labels);
    return proxy;
  }
  static Proxy Router(std::string ns, Labels labels = {}) {
    Proxy proxy = Sidecar(std::move(ns), std::move(labels));
    proxy.type = NodeType::kRouter;
    return proxy;
  }

  // "name.ns" of each, or "name.ns:80,443" for services that do not have port 80 alone.
  template <typename List>
  static std::vector<std::string> Names(const List& services) {
    std::vector<std::string> out;
    for (const ServiceRef& s : services) {
      std::string ports;
      for (const Port& port : s->ports) ports += (ports.empty() ? "" : ",") + std::to_string(port.port);
      out.push_back(s->attributes.name + "." + s->attributes.ns + (ports == "80" ? "" : ":" + ports));
    }
    return out;
  }
  template <typename List>
  static std::vector<std::string> ConfigNames(const List& configs) {
    std::vector<std::string> out;
    for (const auto& c : configs) out.push_back(c->meta.ns + "/" + c->meta.name);
    return out;
  }

  FakeDiscovery discovery;
  config::ConfigStore configs;
  EndpointIndex endpoints;
  Environment env;
};

inline ExportTo Private() { return {.is_private = true}; }
inline ExportTo Public() { return {.is_public = true}; }
inline ExportTo Nowhere() { return {.is_none = true}; }
inline ExportTo To(std::string ns) { return {.namespaces = {std::move(ns)}}; }

}  // namespace wavetank::pilot
