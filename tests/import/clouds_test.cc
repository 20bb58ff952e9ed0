// Audit logs as managed clouds and their tools hand them out: each form holds the same two writes.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "import/skeleton/mesh_of_objects.h"
#include "nlohmann/json.hpp"
#include "tests/import/imported.h"

namespace wavetank::importing {
namespace {

using Tree = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Tree ServiceOf(int port) {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", {{"name", "web"}, {"namespace", "shop"}}},
          {"spec", {{"clusterIP", "10.96.0.7"}, {"ports", {{{"name", "http"}, {"port", port}}}}}}};
}

std::string AuditEvent(const std::string& verb, int port, int second) {
  // As an API server writes it: kind and apiVersion first.
  Tree rest = {{"level", "RequestResponse"},
               {"stage", "ResponseComplete"},
               {"verb", verb},
               {"objectRef", {{"resource", "services"}, {"namespace", "shop"}, {"name", "web"}}},
               {"responseStatus", {{"code", 200}}},
               {"responseObject", ServiceOf(port)},
               {"stageTimestamp", fmt::format("2024-05-06T07:08:0{}.000000Z", second)}};
  return R"({"kind":"Event","apiVersion":"audit.k8s.io/v1",)" + rest.dump().substr(1);
}

class CloudAudit : public ImportTest {
 protected:
  const std::vector<std::string> events_ = {AuditEvent("create", 80, 1), AuditEvent("update", 81, 2)};

  // Verb and port of each write that a file tells, and what was left out of it.
  std::vector<std::string> Writes(const std::string& text) {
    const Imported imported = Read({Put("audit.json", text)});
    EXPECT_THAT(Reasons(imported), IsEmpty()) << text;
    std::vector<std::string> out;
    for (const KubeChange& change : imported.kube.history) {
      out.push_back(fmt::format("{} {} {}", FormatWall(change.at), change.created ? "create" : "update",
                                change.body["object"]["spec"]["ports"][0]["port"].get<int>()));
    }
    return out;
  }
  static std::vector<std::string> Reasons(const Imported& imported) {
    std::vector<std::string> out;
    for (const auto& [reason, counts] : imported.evidence.refusals.reasons()) out.push_back(reason);
    return out;
  }
  auto Both() const {
    return ElementsAre("2024-05-06T07:08:01.000000Z create 80", "2024-05-06T07:08:02.000000Z update 81");
  }
};

TEST_F(CloudAudit, EventsOfCloudWatchAreRead) {
  Tree events = Tree::array();
  for (size_t i = 0; i < events_.size(); ++i) {
    events.push_back({{"timestamp", 1714979281000 + 1000 * static_cast<int64_t>(i)},
                      {"message", events_[i]},
                      {"ingestionTime", 1714979290000}});
  }
  EXPECT_THAT(Writes(Tree{{"events", events}, {"nextForwardToken", "f/1"}}.dump(4)), Both());
  EXPECT_THAT(Writes(Tree{{"events", events}}.dump()), Both());
}

TEST_F(CloudAudit, ResourceLogsOfAzureAreRead) {
  Tree records = Tree::array();
  std::string lines;
  for (const std::string& event : events_) {
    records.push_back({{"time", "2024-05-06T07:08:09Z"},
                       {"category", "kube-audit"},
                       {"properties", {{"log", event}, {"pod", "kube-apiserver-1"}, {"stream", "stdout"}}}});
    lines += records.back().dump() + "\n";
  }
  EXPECT_THAT(Writes(lines), Both());
  EXPECT_THAT(Writes(Tree{{"records", records}}.dump()), Both());
  EXPECT_THAT(Writes(Tree{{"records", {records[0]}}}.dump() + "\n" + Tree{{"records", {records[1]}}}.dump() + "\n"),
              Both());
  Tree rows = Tree::array();
  for (const std::string& event : events_)
    rows.push_back({{"TimeGenerated", "2024-05-06T07:08:09Z"}, {"Category", "kube-audit"}, {"log_s", event}});
  EXPECT_THAT(Writes(rows.dump(2)), Both());
}

TEST_F(CloudAudit, AuditEntriesOfCloudLoggingAreRead) {
  Tree entries = Tree::array();
  for (size_t i = 0; i < events_.size(); ++i) {
    Tree response = ServiceOf(80 + static_cast<int>(i));
    response["@type"] = "core.k8s.io/v1.Service";
    entries.push_back({{"protoPayload",
                        {{"serviceName", "k8s.io"},
                         {"methodName", fmt::format("io.k8s.core.v1.services.{}", i == 0 ? "create" : "update")},
                         {"resourceName", "core/v1/namespaces/shop/services/web"},
                         {"response", response}}},
                       {"resource", {{"type", "k8s_cluster"}, {"labels", {{"cluster_name", "east"}}}}},
                       {"timestamp", fmt::format("2024-05-06T07:08:0{}Z", i + 1)}});
  }
  EXPECT_THAT(Writes(entries.dump(2)), Both());
  EXPECT_THAT(Writes(entries[0].dump() + "\n" + entries[1].dump() + "\n"), Both());
  // What was refused changed nothing; what was deleted is told by its path alone.
  entries[1]["protoPayload"]["status"] = {{"code", 10}};
  EXPECT_THAT(Writes(entries.dump()), ElementsAre("2024-05-06T07:08:01.000000Z create 80"));
  entries[1]["protoPayload"] = {{"serviceName", "k8s.io"},
                                {"methodName", "io.k8s.core.v1.services.delete"},
                                {"resourceName", "core/v1/namespaces/shop/services/web"},
                                {"response", {{"@type", "core.k8s.io/v1.Status"}, {"status", "Success"}}}};
  const Imported imported = Read({Put("audit.json", entries.dump())});
  ASSERT_EQ(imported.kube.history.size(), 2u);
  EXPECT_TRUE(imported.kube.history[1].deleted);
  EXPECT_EQ(imported.kube.history[1].kind, "Service.");
}

TEST_F(CloudAudit, EventsBehindWhatAToolPutsBeforeEachLineAreRead) {
  EXPECT_THAT(Writes("2024-05-06T07:08:01.000Z " + events_[0] + "\n2024-05-06T07:08:02.000Z " + events_[1] + "\n"),
              Both());
  EXPECT_THAT(Writes("ip-10-0-1-2.ec2.internal " + events_[0] + "\nip-10-0-1-2.ec2.internal " + events_[1] + "\n"),
              Both());
  const Imported imported =
      Read({Put("audit.log", "I0506 07:08:00.000000       1 server.go:50] hello\n" + events_[0] + "\n")});
  EXPECT_EQ(imported.kube.history.size(), 1u);
  EXPECT_THAT(Reasons(imported), ElementsAre("line that is no audit event"));
}

TEST_F(CloudAudit, AListOfEventsIsReadAndWhatIsNoneIsCounted) {
  EXPECT_THAT(Writes("[" + events_[0] + "," + events_[1] + "]"), Both());
  const Imported imported = Read({Put("audit.json", events_[0] + "\n{\"results\":[]}\n")});
  EXPECT_EQ(imported.kube.history.size(), 1u);
  EXPECT_THAT(Reasons(imported), ElementsAre("JSON that is no audit event"));
}

TEST_F(CloudAudit, AnEventThatWasCutCostsNoOther) {
  const std::string cut = events_[0].substr(0, events_[0].size() / 2);
  for (const std::string& text :
       {events_[0] + "\n" + cut + "\n" + events_[1] + "\n", events_[0] + "\n" + cut + events_[1] + "\n"}) {
    const Imported imported = Read({Put("audit.log", text)});
    EXPECT_EQ(imported.kube.history.size(), 2u) << text;
    EXPECT_THAT(Reasons(imported), ElementsAre("JSON that ends before its end"));
  }
}

// A watch that broke off and went on: what stands behind the break is read, too.
TEST_F(CloudAudit, AWatchEventThatWasCutCostsNoOther) {
  const auto event = [](const char* type, int port) {
    Tree service = ServiceOf(port);
    service["metadata"]["creationTimestamp"] = "2024-05-06T07:08:01Z";
    return Tree{{"type", type}, {"object", service}};
  };
  const Imported imported = Read({Put("watch.json", event("ADDED", 80).dump() + "\nError from server: timeout\n" +
                                                        event("MODIFIED", 81).dump().substr(0, 60) + "\n" +
                                                        event("MODIFIED", 82).dump(2) + "\n")});
  ASSERT_EQ(imported.kube.history.size(), 2u);
  EXPECT_EQ(imported.kube.history[1].body["object"]["spec"]["ports"][0]["port"], 82);
  EXPECT_EQ(imported.kube.history[1].place.line, 4u);
  EXPECT_THAT(Reasons(imported), ElementsAre("JSON that ends before its end", "text between two JSON values"));
}

// Larger than what is read at a time: each line is told by its own number.
TEST_F(CloudAudit, ALongAuditLogIsReadInPieces) {
  std::string filler = AuditEvent("get", 80, 1);
  filler.insert(filler.size() - 1, R"(,"annotations":{"x":")" + std::string(30'000, 'x') + "\"}");
  std::string text;
  size_t lines = 0;
  for (; text.size() < (40u << 20); ++lines) text += filler + "\n";
  text += events_[0] + "\nno event\n" + events_[1] + "\n";
  const Imported imported = Read({Put("audit.log", text)});
  ASSERT_EQ(imported.kube.history.size(), 2u);
  EXPECT_EQ(imported.kube.history[0].place.line, lines + 1);
  EXPECT_EQ(imported.kube.history[1].place.line, lines + 3);
  EXPECT_EQ(imported.evidence.bytes, text.size());
}

// What was made after the log began says as much of its cluster as what was there.
TEST_F(CloudAudit, AnAuditLogThatBeginsWithTheClusterIsAMesh) {
  const Imported imported = Read({Put("audit.log", events_[0] + "\n" + events_[1] + "\n")});
  const auto mesh = MakeMeshOfObjects(imported.evidence, imported.kube);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  ASSERT_EQ(mesh->world.clusters.size(), 1u);
  std::vector<Duration> applied;
  for (const replay::LogInput& input : WholeInputs(*mesh)) {
    const Tree object = input.body.value("object", Tree());
    const bool web = object.value("kind", "") == "Service" && object["metadata"]["name"] == "web";
    if (input.kind == "apply" && web) applied.push_back(input.at - mesh->world.start);
  }
  EXPECT_THAT(applied, ElementsAre(kComesUp, kComesUp + 1s));
}

TEST_F(CloudAudit, TheClockOfAnApiServerIsPutRight) {
  ImportOptions options;
  options.sources = {Put("audit.log", events_[0] + "\n")};
  options.skews = {{"audit.log", 5'000'000'000}};
  const auto imported = Import(options);
  ASSERT_TRUE(imported.ok());
  EXPECT_EQ(FormatWall(imported->kube.history[0].at), "2024-05-06T07:08:06.000000Z");
}

TEST_F(CloudAudit, AnObjectWhoseKindEndsAsListsDoIsAnObject) {
  const Imported imported = Read({Put("objects.json", R"({"apiVersion":"example.com/v1","kind":"AllowList",
      "metadata":{"name":"a","namespace":"shop"},"spec":{}})")});
  EXPECT_EQ(imported.kube.unseen.at("AllowList"), 1u);
}

}  // namespace
}  // namespace wavetank::importing
