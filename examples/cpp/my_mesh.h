// The mesh of these examples: two primaries on two networks, and an application with a version in each.
#pragma once

#include <wavetank/mesh.h>

inline wavetank::Mesh MyMesh() {
  wavetank::Mesh mesh;
  mesh.clusters = {{.name = "east", .network = "net-east"}, {.name = "west", .network = "net-west"}};
  mesh.apps = {{.name = "web",
                .port = 8080,
                .deployments = {{.cluster = "east", .version = "v1"}, {.cluster = "west", .version = "v2"}}}};
  return mesh;
}
