/* What all arm64 cores share, by LLVM's names. */
#include "core.h"

using namespace llvm;

namespace {

const class Arm64 final : public Core
{
public:
	enum crossing crossing(StringRef name) const override
	{
		return name == "SVC" ? CROSSING_CALL : CROSSING_NONE;
	}
} arm64;
const CoreFamily family(Triple::aarch64, "", arm64);

} // namespace
