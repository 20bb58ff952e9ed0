// The main of all test programs. Its exit code tells ctest whether anything ran: 77 if every selected test was left
// out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  const int code = RUN_ALL_TESTS();
  const ::testing::UnitTest& tests = *::testing::UnitTest::GetInstance();
  const bool nothing_ran = tests.successful_test_count() == 0 && tests.skipped_test_count() > 0;
  return code == 0 && nothing_ran ? 77 : code;
}
