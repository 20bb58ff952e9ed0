// The sandbox: what a script of a stranger's can not do. What scripts can do is compared with a real Envoy
// (tests/oracles/envoy/cases/filters.json).
#include "fakes/envoy/filters/lua/vm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/status.h"
#include "nlohmann/json.hpp"

namespace wavetank::envoysim {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class TestStream final : public LuaStream {
 public:
  bool is_request() const override { return true; }
  LuaHeaders Headers() const override { return headers; }
  void Add(const std::string& name, const std::string& value) override { headers.emplace_back(name, value); }
  void Replace(const std::string& name, const std::string& value) override {
    Remove(name);
    Add(name, value);
  }
  void Remove(const std::string& name) override {
    std::erase_if(headers, [&](const auto& header) { return header.first == name; });
  }
  bool Respond(LuaHeaders, std::string) override { return true; }
  bool Call(const std::string&, LuaHeaders, const std::string&, int64_t, bool) override { return true; }
  void Log(std::string_view level, const std::string& text) override { log += std::string(level) + ": " + text + "\n"; }
  std::optional<std::string> Body() const override { return std::nullopt; }
  void SetBody(std::string) override {}
  nlohmann::json RouteMetadata() const override { return metadata; }
  nlohmann::json DynamicMetadataOf(const std::string&) const override { return {}; }
  nlohmann::json AllDynamicMetadata() const override { return nlohmann::json::object(); }
  void SetDynamicMetadata(const std::string& filter, const std::string& key, nlohmann::json value) override {
    set[filter][key] = std::move(value);
  }
  std::optional<std::string> Info(std::string_view) const override { return std::nullopt; }
  int64_t NowMicroseconds() const override { return 1'700'000'000'123'456; }
  double Random() override { return 0.5; }

  LuaHeaders headers;
  nlohmann::json metadata = nlohmann::json::object(), set;
  std::string log;
};

// Runs `body` as envoy_on_request(h). The log, or the error.
std::string RunBody(const std::string& body, TestStream& stream) {
  const auto vm = LuaVm::Load("function envoy_on_request(h)\n" + body + "\nend");
  if (!vm.ok()) return std::string(Message(vm.status()));
  const LuaVm::Run run = (*vm)->Start("envoy_on_request", stream);
  return run.state == LuaVm::Run::State::kFailed ? "error: " + run.error : stream.log;
}
std::string RunBody(const std::string& body) {
  TestStream stream;
  return RunBody(body, stream);
}

TEST(LuaVmTest, NothingOfTheMachineIsThere) {
  for (const char* name : {"os", "io", "package", "debug", "require", "dofile", "loadfile", "load", "loadstring",
                           "collectgarbage", "newproxy", "setfenv", "string.dump"}) {
    EXPECT_EQ(RunBody(std::string("h:logInfo(tostring(") + name + "))"), "info: nil\n") << name;
  }
}

TEST(LuaVmTest, AScriptThatDoesNotEndIsEnded) {
  EXPECT_THAT(RunBody("while true do end"), HasSubstr("runs for more than 5000000 instructions"));
  EXPECT_THAT(RunBody("while true do pcall(function() while true do end end) end"), HasSubstr("instructions"));
  EXPECT_THAT(RunBody("local c = coroutine.wrap(function() while true do end end) while true do pcall(c) end"),
              HasSubstr("error:"));
  const auto vm = LuaVm::Load("while true do end");
  EXPECT_THAT(std::string(Message(vm.status())), HasSubstr("instructions"));
}

TEST(LuaVmTest, EachCallHasItsOwnInstructions) {
  const auto vm = LuaVm::Load("function envoy_on_request(h) for i = 1, 600000 do local x = i end end");
  ASSERT_TRUE(vm.ok()) << vm.status();
  for (int i = 0; i < 10; ++i) {
    TestStream stream;
    EXPECT_EQ((*vm)->Start("envoy_on_request", stream).state, LuaVm::Run::State::kEnded) << i;
  }
}

TEST(LuaVmTest, MemoryIsBounded) {
  EXPECT_THAT(RunBody("local t = {} for i = 1, 1e9 do t[i] = string.rep('x', 100000) .. i end"),
              HasSubstr("not enough memory"));
  EXPECT_THAT(RunBody("return string.rep('x', 1e9)"), HasSubstr("not enough memory"));
}

TEST(LuaVmTest, DeepTablesAndEndlessRecursionAreErrors) {
  EXPECT_THAT(RunBody("local t = {} local at = t for i = 1, 1000 do at.x = {} at = at.x end "
                      "h:streamInfo():dynamicMetadata():set('f', 'k', t)"),
              HasSubstr("nested too deeply"));
  EXPECT_THAT(RunBody("local function f() return 1 + f() end f()"), HasSubstr("stack overflow"));
}

TEST(LuaVmTest, BytecodeIsNotTaken) {
  EXPECT_THAT(std::string(Message(LuaVm::Load("\033Lua").status())), StartsWith("script load error: "));
}

TEST(LuaVmTest, NoAddressIsShown) {
  EXPECT_EQ(RunBody("h:logInfo(tostring({})) h:logInfo(tostring(h.headers))"),
            "info: table: 0x00000000\ninfo: function: 0x00000000\n");
}

TEST(LuaVmTest, ChanceIsTheWorlds) {
  EXPECT_EQ(RunBody("h:logInfo(math.random()) h:logInfo(math.random(10)) h:logInfo(math.random(5, 7))"),
            "info: 0.5\ninfo: 6\ninfo: 6\n");
}

TEST(LuaVmTest, AnObjectOfAnotherCallIsRefused) {
  const auto vm =
      LuaVm::Load("function envoy_on_request(h) if kept then kept:headers():add('x-late', '1') end kept = h end");
  ASSERT_TRUE(vm.ok()) << vm.status();
  TestStream first, second;
  EXPECT_EQ((*vm)->Start("envoy_on_request", first).state, LuaVm::Run::State::kEnded);
  const LuaVm::Run run = (*vm)->Start("envoy_on_request", second);
  EXPECT_EQ(run.state, LuaVm::Run::State::kFailed);
  EXPECT_THAT(run.error, HasSubstr("object used outside of proper scope"));
  EXPECT_TRUE(second.headers.empty());
}

TEST(LuaVmTest, HeadersAreNotChangedWhileTheyAreGoneThrough) {
  TestStream stream;
  stream.headers = {{"x-a", "1"}};
  EXPECT_THAT(RunBody("for k, v in pairs(h:headers()) do h:headers():remove(k) end", stream),
              HasSubstr("header map cannot be modified while iterating"));
  EXPECT_EQ(stream.headers.size(), 1u);
}

TEST(LuaVmTest, ACallThatWaitsGoesOnWithItsAnswer) {
  const auto vm = LuaVm::Load(R"(
function envoy_on_request(h)
  local headers, body = h:httpCall("c", {[":method"] = "GET", [":path"] = "/", [":authority"] = "a"}, "", 10)
  h:logInfo(headers[":status"] .. " " .. tostring(body) .. " " .. h:headers():get("x-who"))
end)");
  ASSERT_TRUE(vm.ok()) << vm.status();
  TestStream one, two;
  one.headers = {{"x-who", "one"}};
  two.headers = {{"x-who", "two"}};
  const LuaVm::Run first = (*vm)->Start("envoy_on_request", one), second = (*vm)->Start("envoy_on_request", two);
  ASSERT_EQ(first.state, LuaVm::Run::State::kWaits) << first.error;
  ASSERT_EQ(second.state, LuaVm::Run::State::kWaits) << second.error;
  EXPECT_EQ((*vm)->Resume(second.thread, two, {{":status", "200"}}, "ok").state, LuaVm::Run::State::kEnded);
  EXPECT_EQ((*vm)->Resume(first.thread, one, {{":status", "503"}}, "").state, LuaVm::Run::State::kEnded);
  EXPECT_EQ(one.log, "info: 503 nil one\n");
  EXPECT_EQ(two.log, "info: 200 ok two\n");
}

TEST(LuaVmTest, MetadataGoesInAndOut) {
  TestStream stream;
  stream.metadata = {{"n", 1.5}, {"list", {1, "two", true}}, {"deep", {{"er", nullptr}}}};
  EXPECT_EQ(
      RunBody("local m = h:metadata() h:streamInfo():dynamicMetadata():set('f', 'k', {m:get('n'), m:get('list')})",
              stream),
      "");
  EXPECT_EQ(stream.set["f"]["k"], nlohmann::json::parse(R"([1.5, [1.0, "two", true]])"));
}

TEST(LuaVmTest, TablesAreGoneThroughInAnOrderOfTheirOwn) {
  const std::string body =
      "local t = {} for _, k in ipairs{'zeta', 'alpha', 'beta', 'x', 'yy', 'omega'} do t[k] = 1 end "
      "local out = '' for k in pairs(t) do out = out .. k .. ' ' end h:logInfo(out)";
  const std::string first = RunBody(body);
  EXPECT_THAT(first, HasSubstr("zeta"));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(RunBody(body), first);
}

}  // namespace
}  // namespace wavetank::envoysim
