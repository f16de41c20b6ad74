#include "core.h"

using namespace llvm;

namespace {

const CoreFamily *families;

class Plain final : public Core
{
} plain;

} // namespace

CoreFamily::CoreFamily(Triple::ArchType its_arch, StringRef its_prefix, const Core &its_core)
	: arch(its_arch), prefix(its_prefix), core(its_core), next(families)
{
	families = this;
}

const Core &CoreFamily::find(const MCSubtargetInfo &core)
{
	const CoreFamily *found = nullptr;

	for (const CoreFamily *family = families; family != nullptr; family = family->next)
		if (core.getTargetTriple().getArch() == family->arch &&
		    core.getCPU().starts_with(family->prefix) &&
		    (found == nullptr || family->prefix.size() > found->prefix.size()))
			found = family;
	return found != nullptr ? found->core : plain;
}
