// How long one has to wait between the steps of rehearsals.
#include "tests/cli/program.h"

namespace wavetank {
namespace {

class Rehearsal : public ProgramTest {
 protected:
  explicit Rehearsal(std::string story) : story_(std::move(story)) {}
  // Whether everything holds with so many minutes in place of the `which`th wait of thirteen hours.
  bool Works(int which, int minutes) {
    std::string text = Read(std::string(WAVETANK_SOURCE_DIR "/scenarios/") + story_ + "/scenario.yaml");
    for (const std::string_view relative : {"../manifests", "../root-rotation"}) {
      const std::string whole = std::string(WAVETANK_SOURCE_DIR "/scenarios") + std::string(relative.substr(2));
      for (size_t at = text.find(relative); at != std::string::npos; at = text.find(relative, at + whole.size())) {
        text.replace(at, relative.size(), whole);
      }
    }
    size_t at = text.find("after: 13h");
    for (int i = 0; i < which; ++i) at = text.find("after: 13h", at + 1);
    text.replace(at, 10, fmt::format("after: {}m", minutes));
    return Call("run " + Write("scenario.yaml", text)).code == 0;
  }
  // What has to be waited for takes between so many minutes: the fewer are too short, the more are enough.
  void ExpectLeastWait(int which, int too_short, int enough) {
    EXPECT_FALSE(Works(which, too_short));
    EXPECT_TRUE(Works(which, enough));
  }

 private:
  const std::string story_;
};

class RootRotation : public Rehearsal {
 protected:
  RootRotation() : Rehearsal("root-rotation") {}
};
class SelfSignedToPlugged : public Rehearsal {
 protected:
  SelfSignedToPlugged() : Rehearsal("self-signed-to-plugged") {}
};
class TwoMeshesMerged : public Rehearsal {
 protected:
  TwoMeshesMerged() : Rehearsal("two-meshes-merged") {}
};
class TrustDomainRenamed : public ProgramTest {};

// Certificates live for a day and are renewed at its half: until then a workload knows the roots that came with its
// own.
TEST_F(RootRotation, TheNewRootMaySignWhenEveryWorkloadHasRenewedOnce) {
  ExpectLeastWait(0, 11 * 60 + 45, 12 * 60 + 10);
}

TEST_F(RootRotation, TheOldRootMayGoWhenEveryWorkloadHasRenewedAgain) {
  // An hour of that half day was over: the story waited thirteen hours before.
  ExpectLeastWait(1, 10 * 60 + 45, 11 * 60 + 10);
}

TEST_F(SelfSignedToPlugged, ThePluggedRootMaySignWhenEveryWorkloadHasRenewedOnce) {
  ExpectLeastWait(0, 11 * 60 + 45, 12 * 60 + 10);
}

TEST_F(SelfSignedToPlugged, TheOldRootsMayGoWhenEveryWorkloadHasRenewedAgain) {
  ExpectLeastWait(1, 10 * 60 + 45, 11 * 60 + 10);
}

TEST_F(TwoMeshesMerged, RemoteSecretsMayBeExchangedWhenEveryWorkloadKnowsBothRoots) {
  ExpectLeastWait(0, 11 * 60 + 45, 12 * 60 + 10);
}

TEST_F(TrustDomainRenamed, WithItsAliasNoRequestFailsAndWithoutMostDo) {
  const std::string story = WAVETANK_SOURCE_DIR "/scenarios/trust-domain-renamed/";
  EXPECT_EQ(Call("run " + story + "scenario.yaml").code, 0);
  std::string text = Read(story + "scenario.yaml");
  const std::string mesh = Read(story + "mesh.yaml"), alias = "    trustDomainAliases: [cluster.local]\n";
  ASSERT_NE(mesh.find(alias), std::string::npos);
  const std::string without = Write("mesh.yaml", std::string(mesh).replace(mesh.find(alias), alias.size(), ""));
  for (const auto& [from, to] : {std::pair<std::string, std::string>("manifest: mesh.yaml", "manifest: " + without),
                                 {"manifest: sleep-alone.yaml", "manifest: " + story + "sleep-alone.yaml"},
                                 {"../root-rotation", WAVETANK_SOURCE_DIR "/scenarios/root-rotation"}}) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
  }
  const Ran ran = Call("run " + Write("scenario.yaml", text));
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.output, testing::HasSubstr("the caller does not believe its certificate"));
}

}  // namespace
}  // namespace wavetank
