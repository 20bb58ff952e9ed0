// What a process that is killed leaves: all that any client was answered, and a log that replays as far as it goes.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <mutex>
#include <set>
#include <thread>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/random.h"
#include "tests/await.h"
#include "tests/cli/program.h"
#include "tests/long.h"

namespace wavetank {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kMesh = "name: mesh\nclusters:\n- {name: c1, network: n1}\n";

// One connection that creates ConfigMaps one after the other until the server is gone.
class Writer {
 public:
  explicit Writer(uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    connected_ = connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  ~Writer() { close(socket_); }

  // True once the server has answered 201.
  bool Create(const std::string& name) {
    const std::string body =
        JsonText(json{{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", name}}}});
    const std::string text = fmt::format(
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        "Content-Length: {}\r\n\r\n{}",
        body.size(), body);
    if (!connected_ || send(socket_, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
      return false;
    std::string answer;
    size_t whole = std::string::npos;
    while (answer.size() < whole) {
      char buffer[4096];
      const ssize_t got = recv(socket_, buffer, sizeof buffer, 0);
      if (got <= 0) return false;
      answer.append(buffer, static_cast<size_t>(got));
      const size_t head = answer.find("\r\n\r\n"), length = answer.find("Content-Length: ");
      if (head != std::string::npos && length != std::string::npos)
        whole = head + 4 + static_cast<size_t>(std::atoi(answer.c_str() + length + 16));
    }
    return answer.starts_with("HTTP/1.1 201");
  }

 private:
  int socket_;
  bool connected_ = false;
};

class Durability : public ProgramTest {
 protected:
  // Serves, lets `writers` connections write for a while, kills. Returns what was acknowledged.
  std::set<std::string> ServeAndKill(const std::string& log, int writers, std::chrono::microseconds life,
                                     const std::string& durability = "acknowledged") {
    std::filesystem::create_directories(folder_ / "mesh");
    Write("mesh/scenario.yaml", kMesh);
    Process server({"serve", (folder_ / "mesh").string(), "--listen", "127.0.0.1:0", "--secure-listen", "", "--kube",
                    "127.0.0.1:0", "--json", "--no-watch", "-o", log, "--durability", durability},
                   (folder_ / "server").string());
    const json ready = ParseJson(server.Line());
    EXPECT_FALSE(ready.is_discarded()) << Read(folder_ / "server");
    const std::string at = Text(Items(At(ready, "kube")).at(0), "server");
    const auto port = static_cast<uint16_t>(std::stoi(at.substr(at.rfind(':') + 1)));
    std::mutex mutex;
    std::set<std::string> acknowledged;
    std::vector<std::thread> threads;
    for (int w = 0; w < writers; ++w) {
      threads.emplace_back([&, w] {
        Writer writer(port);
        for (int i = 0; writer.Create(fmt::format("w{}-{}", w, i)); ++i) {
          const std::lock_guard<std::mutex> lock(mutex);
          acknowledged.insert(fmt::format("w{}-{}", w, i));
        }
      });
    }
    LetTimePass(life);  // the moment of the kill is what is tried
    server.Signal(SIGKILL);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(server.Wait(), 1000 + SIGKILL);
    return acknowledged;
  }

  std::set<std::string> Logged(const std::string& log) {
    const Ran ran = Call("replay --inputs --json " + log);
    EXPECT_EQ(ran.code, 3) << ran.error;
    EXPECT_THAT(ran.error, HasSubstr("not whole"));
    std::set<std::string> names;
    const json inputs = ParseJson(ran.output);
    for (const json& input : Items(inputs)) {
      if (At(input, "kind") == "kubeRequest") names.insert(Text(At(input, {"body", "body", "metadata"}), "name"));
    }
    return names;
  }

  void ExpectReplays(const std::string& log) {
    const Ran ran = Call("replay " + log);
    EXPECT_EQ(ran.code, 3) << ran.output << ran.error;
    EXPECT_THAT(ran.output, HasSubstr("identical as far as it went"));
  }
};

TEST_F(Durability, WhatAKilledServeHadAnsweredIsInItsLog) {
  const int kills = LongTests() ? 700 : 30;
  RandomStream random(static_cast<uint64_t>(getpid()), "kills");
  size_t all = 0;
  for (int i = 0; i < kills; ++i) {
    const std::string log = (folder_ / fmt::format("{}.wtlog", i)).string();
    const std::chrono::microseconds life(random.Between(0, i % 5 == 0 ? 400'000 : 60'000));
    const std::set<std::string> acknowledged = ServeAndKill(log, 8, life);
    all += acknowledged.size();
    const std::set<std::string> logged = Logged(log + ".partial");
    for (const std::string& name : acknowledged) {
      ASSERT_TRUE(logged.contains(name)) << name << " was answered 201, killed after " << life.count() << " us";
    }
    if (i % 10 == 0) ExpectReplays(log + ".partial");
    ASSERT_FALSE(HasFailure()) << i;
    std::filesystem::remove(log + ".partial");
  }
  EXPECT_GT(all, 50u);  // else nothing was tried
}

TEST_F(Durability, ALogOfASecondHoldsAllButTheLastSecond) {
  const std::string log = (folder_ / "log").string();
  const std::set<std::string> acknowledged = ServeAndKill(log, 2, std::chrono::milliseconds(1500), "second");
  EXPECT_GT(acknowledged.size(), 10u);
  EXPECT_GT(Logged(log + ".partial").size(), acknowledged.size() / 10);
  ExpectReplays(log + ".partial");
}

bool HasBytes(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return !error && size > 0;
}

TEST_F(Durability, AKilledRunLeavesALogThatReplaysOrNone) {
  const int kills = LongTests() ? 300 : 20;
  RandomStream random(static_cast<uint64_t>(getpid()), "runs");
  const std::string scenario = WAVETANK_SOURCE_DIR "/scenarios/multi-primary-multi-network";
  int left = 0;
  for (int i = 0; i < kills; ++i) {
    const std::string log = (folder_ / "run.wtlog").string();
    {
      Process run({"run", scenario, "-o", log}, (folder_ / "errors").string());
      // Every other one while it writes, however long a busy machine takes until then.
      if (i % 2 == 0) {
        EXPECT_TRUE(Await([&] { return HasBytes(log + ".partial") || HasBytes(log); }));
      }
      LetTimePass(std::chrono::milliseconds(random.Between(0, i % 2 == 0 ? 200 : 1500)));
      run.Signal(SIGKILL);
      run.Wait();
    }
    const std::string partial = log + ".partial";
    if (std::filesystem::exists(log)) {
      EXPECT_EQ(Call("replay " + log).code, 0);
    } else if (HasBytes(partial)) {
      ++left;
      const Ran ran = Call("replay " + partial);
      // Killed before its header was there, it is no log yet, and says so; killed between its last byte and its new
      // name, it is whole.
      EXPECT_TRUE(ran.code == 3 || ran.code == 2 || ran.code == 0) << ran.code << ran.output << ran.error;
      if (ran.code == 3) {
        EXPECT_THAT(ran.output, HasSubstr("identical as far as it went"));
      } else if (ran.code == 0) {
        EXPECT_THAT(ran.output, HasSubstr("identical"));
      }
    }
    std::filesystem::remove(log);
    std::filesystem::remove(partial);
    ASSERT_FALSE(HasFailure()) << i;
  }
  EXPECT_GT(left, 0);
}

}  // namespace
}  // namespace wavetank
