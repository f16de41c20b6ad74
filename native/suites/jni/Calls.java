/**
 * Calls to another process, whose parameters go through JNI in different ways. The answer has every
 * byte of the message with its lowest bit changed.
 */
final class Calls {
	private static final int WORDS = 31;
	private static final int BYTES = 4 * WORDS;
	private static final int ANSWER = 0x01010101;

	private Calls() {
	}

	/* Without parameters: message and answer stay in C. */
	private static native boolean call();

	/* Number by number, like android.os.Parcel. */
	private static native void reset();

	private static native void writeInt(int number);

	private static native boolean transact();

	private static native int readInt();

	/* All at once; the answer replaces the message. */
	private static native boolean callInts(int[] message);

	private static native boolean callBytes(byte[] message);

	private static native String callString(String message);

	static boolean empty(int calls) {
		for (int i = 0; i < calls; i++)
			if (!call())
				return false;
		return true;
	}

	static boolean ints(int calls) {
		for (int i = 0; i < calls; i++) {
			reset();
			for (int k = 0; k < WORDS; k++)
				writeInt(i + k);
			if (!transact())
				return false;
			for (int k = 0; k < WORDS; k++)
				if (readInt() != (i + k ^ ANSWER))
					return false;
		}
		return true;
	}

	static boolean array(int calls) {
		final int[] message = new int[WORDS];
		for (int i = 0; i < calls; i++) {
			for (int k = 0; k < WORDS; k++)
				message[k] = i + k;
			if (!callInts(message))
				return false;
			for (int k = 0; k < WORDS; k++)
				if (message[k] != (i + k ^ ANSWER))
					return false;
		}
		return true;
	}

	/* Only the ends of the message differ from call to call: a loop over all would cost more. */
	static boolean bytes(int calls) {
		final byte[] message = new byte[BYTES];
		for (int i = 0; i < calls; i++) {
			message[0] = (byte) i;
			message[BYTES - 1] = (byte) (i >> 8);
			if (!callBytes(message) || message[0] != (byte) (i ^ 1)
					|| message[BYTES - 1] != (byte) (i >> 8 ^ 1))
				return false;
		}
		return true;
	}

	static boolean string(int calls) {
		final String[] messages = {"a".repeat(BYTES), "d".repeat(BYTES)};
		for (int i = 0; i < calls; i++) {
			final String message = messages[i & 1];
			final String answer = callString(message);
			if (answer == null || answer.length() != BYTES
					|| answer.charAt(0) != (message.charAt(0) ^ 1)
					|| answer.charAt(BYTES - 1) != (message.charAt(BYTES - 1) ^ 1))
				return false;
		}
		return true;
	}
}
