#include "sim/apps/httpbin.h"

#include <gtest/gtest.h>

#include <map>

namespace wavetank::sim {
namespace {

envoysim::AppReply Answer(const std::string& path, RandomStream& random) {
  envoysim::RequestSpec request;
  request.path = path;
  envoysim::AppReply reply;
  AnswerAsHttpbin(request, random, &reply);
  return reply;
}

TEST(Httpbin, AnswersWithTheStatusOfThePath) {
  RandomStream random(1, "httpbin");
  EXPECT_EQ(Answer("/status/418", random).code, 418);
  EXPECT_EQ(Answer("/status/503?x=1", random).code, 503);
  EXPECT_EQ(Answer("/status/teapot", random).code, 400);
  EXPECT_EQ(Answer("/status/42", random).code, 400);
  EXPECT_EQ(Answer("/headers", random).code, 200);
}

TEST(Httpbin, ChoosesOneOfSeveralStatusesByTheirWeights) {
  RandomStream random(1, "httpbin");
  std::map<int, int> seen;
  for (int i = 0; i < 4000; ++i) ++seen[Answer("/status/200:3,503", random).code];
  EXPECT_EQ(seen.size(), 2U);
  EXPECT_NEAR(seen[503], 1000, 150);
  EXPECT_EQ(Answer("/status/200:0,503:0", random).code, 400);
}

TEST(Httpbin, WaitsAsLongAsThePathSaysAndTenSecondsAtMost) {
  RandomStream random(1, "httpbin");
  EXPECT_EQ(Answer("/delay/5", random).delay, 5s);
  EXPECT_EQ(Answer("/delay/0.5", random).delay, 500ms);
  EXPECT_EQ(Answer("/delay/60", random).delay, 10s);
  EXPECT_EQ(Answer("/delay/long", random).delay, 0s);
}

TEST(Httpbin, IsKnownByItsImage) {
  EXPECT_TRUE(IsHttpbin("docker.io/kennethreitz/httpbin"));
  EXPECT_TRUE(IsHttpbin("registry:5000/mccutchen/go-httpbin:v2.15.0"));
  EXPECT_TRUE(IsHttpbin("httpbin@sha256:0"));
  EXPECT_FALSE(IsHttpbin("example/httpbin-proxy"));
  EXPECT_FALSE(IsHttpbin("httpbin/web"));
}

}  // namespace
}  // namespace wavetank::sim
